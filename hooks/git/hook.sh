#!/bin/sh
# git-durable hook: keeps a person's git from racing an agent's turn. 'git durable uninstall' takes it away again.
# It refuses only while a turn of a living holder is open in this work tree, and only what is not the turn's own; then it
# becomes the hook that was here before (NAME.durable-prev), with the same arguments and input.
name=@NAME@
here=${0%/*}
previous=$here/$name.durable-prev

# First what old git asks once a ref in a fetch, before anything else of this file is even read: by builtins, whether a move is
# plain, which is of nothing but what a fetch brings.
input=
plain=
if [ "$name" = reference-transaction ]; then
  case $1 in
    prepared | committed)
      plain=yes
      while IFS= read -r line; do
        input="$input$line
"
        case ${line##* } in refs/remotes/* | refs/durable-remote/* | FETCH_HEAD) ;; *) plain= ;; esac
      done
      [ -z "$plain" ] || [ -x "$previous" ] || exit 0
      ;;
    *) [ -x "$previous" ] || exit 0 ;;
  esac
fi

git_dir=${GIT_DIR:-.git}
[ -d "$git_dir" ] || git_dir=$(git rev-parse --git-dir)
common=$git_dir
if [ -f "$git_dir/commondir" ]; then
  read -r common < "$git_dir/commondir"
  case $common in /*) ;; *) common=$git_dir/$common ;; esac
fi

# Reads the state of one work tree; true when a turn of a living holder that this process is no part of is open there.
# `verdict`: none, dead, own (this process is the turn's), other.
is_fenced() {
  verdict=none
  [ -f "$1/durable/fence" ] || return 1
  verdict=dead
  { read -r pid; read -r start; read -r digest; read -r turn; read -r epoch; read -r sentence; read -r since; } < "$1/durable/fence"
  if [ -r "/proc/$pid/stat" ]; then
    read -r stat < "/proc/$pid/stat"
    set -- ${stat##*)}
    [ "$1" != Z ] && [ "${20}" = "$start" ] || return 1
  elif [ -d /proc/self ] || ! kill -0 "$pid" 2>/dev/null; then
    return 1
  fi
  verdict=own
  if [ -n "$DURABLE_MARKER" ] && [ "$(printf %s "$DURABLE_MARKER" | git hash-object --stdin)" = "$digest" ]; then
    return 1
  fi
  descends && return 1
  verdict=other
}

# One line for the observer: whose, what, before, after, pid and start of the git, its command line, its ancestors.
note() {
  read -r stat < "/proc/$PPID/stat"
  set -- "$@" ${stat##*)}
  above=
  at=$5
  while [ "$at" -gt 1 ] && read -r stat < "/proc/$at/stat"; do
    program=${stat#*(}
    above="$above ${program%)*}($at)"
    program=${stat##*)}
    program=${program#" "[A-Za-z]" "}
    at=${program%%" "*}
  done 2>/dev/null
  tab=$(printf '\t')
  echo "$verdict$tab$1$tab$2$tab$3$tab$PPID$tab${23}$tab$(command_line)$tab$above" >> "$git_dir/durable/moves"
}

# Whether the holder is an ancestor of this process: a turn's process that lost its environment.
descends() {
  at=$$
  if [ -d /proc/self ]; then
    while [ "$at" -gt 1 ] && read -r stat < "/proc/$at/stat"; do
      [ "$at" = "$pid" ] && return 0
      set -- ${stat##*)}
      at=$2
    done 2>/dev/null
    return 1
  fi
  ps -A -o pid=,ppid= | awk -v at="$at" -v to="$pid" '{ up[$1] = $2 } END { while (at > 1 && at != to) at = up[at]; exit at != to }'
}

command_line() {
  if [ -r "/proc/$PPID/cmdline" ]; then tr '\000' ' ' < "/proc/$PPID/cmdline"; else ps -o args= -p "$PPID"; fi
}

refuse() {
  if [ "$DURABLE_BYPASS" = "$turn" ]; then return 0; fi
  {
    echo "git-durable: refused ($name): $sentence, $(( ($(date +%s) - since) / 60 )) minutes ago"
    echo 'git-durable: what it does: git durable status'
    echo 'git-durable: beside it all the same, and recorded: git durable op --beside -- GIT ARGS'
  } >&2
  exit 1
}

# What may move under a turn: what a fetch brings, and no branch, tag, stash or HEAD of the fenced work tree.
check_refs() {
  while read -r _ _ ref; do
    case $ref in
      refs/remotes/* | refs/durable-remote/* | FETCH_HEAD) ;;
      refs/tags/*)
        case " $(command_line) " in *' fetch '* | *' fetch-pack '* | *' pull '*) ;; *) refuse ;; esac
        ;;
      '') ;;
      *) refuse ;;
    esac
  done <<END
$input
END
}

# The branch that a fenced other work tree has checked out, and our own records, move for nobody else.
check_other() {
  read -r _ branch < "$1/HEAD"
  while read -r _ _ ref; do
    case $ref in "$branch" | refs/durable/*) refuse ;; esac
  done <<END
$input
END
}

if [ "$name" = reference-transaction ]; then
  for state in "$common/durable/fence" "$common"/worktrees/*/durable/fence; do
    [ -f "$state" ] || continue
    case $1 in prepared | committed) ;; *) break ;; esac
    [ -z "$plain" ] || break
    other=${state%/durable/fence}
    if [ "$1" = prepared ]; then
      is_fenced "$other" || continue
      if [ "$other" -ef "$git_dir" ]; then check_refs; else check_other "$other"; fi
    elif [ "$other" -ef "$git_dir" ]; then
      is_fenced "$other"
      case $verdict in
        own | other)
          while read -r old new ref; do
            if [ -n "$ref" ]; then note "$ref" "$old" "$new"; fi
          done <<END
$input
END
          ;;
      esac
    fi
  done
elif [ "$name" = post-index-change ]; then
  if is_fenced "$git_dir"; then note index - -; fi
elif is_fenced "$git_dir"; then
  refuse
fi

[ -x "$previous" ] || exit 0
# The pre-commit framework runs what it moved to NAME.legacy, which may be this file: not the framework again.
if [ -n "$PRE_COMMIT_RUNNING_LEGACY" ] && grep -q 'generated by pre-commit' "$previous"; then exit 0; fi
# A shell script may look at its own name (husky does): it keeps it.
IFS= read -r first < "$previous"
case $first in
  '#!'*bash*) set -- bash "$@" ;;
  '#!'*[/\ ]sh | '#!'*[/\ ]sh\ * | '#!'*dash*) set -- sh "$@" ;;
  *) set -- '' "$@" ;;
esac
shell=$1
shift
if [ -n "$shell" ]; then set -- "$shell" -c 'file=$1; shift; . "$file"' "$0" "$previous" "$@"; else set -- "$previous" "$@"; fi
if [ -n "$input" ]; then printf %s "$input" | "$@"; else exec "$@"; fi
