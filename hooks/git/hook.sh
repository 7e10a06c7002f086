#!/bin/sh
# git-durable hook: keeps a person's git from racing an agent's turn. 'git durable uninstall' takes it away again.
# It refuses only while a turn of a living holder is open in this work tree, and only what is not the turn's own; then it
# becomes the hook that was here before (NAME.durable-prev), with the same arguments and input.
name=@NAME@
here=${0%/*}
previous=$here/$name.durable-prev
tab='	'

# First what old git asks once a ref in a fetch, before anything else of this file is even read: by builtins, whether a move is
# plain, which is of nothing but what a fetch brings. Nobody refuses it; once it is done it is noted.
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
      [ "$1" = committed ] || [ -z "$plain" ] || [ -x "$previous" ] || exit 0
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

# For the observer, once for each git that has hooks: whose it is, its command line, its ancestors, in `mover.PID.START`. False
# where no turn of a living holder is open. What the git did are lines of `moves`: hook, thing, before, after, pid, start.
witness() {
  git_start=
  if [ -r "/proc/$PPID/stat" ]; then
    read -r stat < "/proc/$PPID/stat"
    set -- "$1" ${stat##*)}
    git_start=${21}
  fi
  mover=$1/durable/mover.$PPID.$git_start
  if [ -f "$mover" ]; then return 0; fi
  is_fenced "$1"
  case $verdict in own | other) ;; *) return 1 ;; esac
  above=
  at=${3:-0}
  while [ "$at" -gt 1 ] && read -r stat < "/proc/$at/stat"; do
    program=${stat#*(}
    above="$above ${program%)*}($at)"
    program=${stat##*)}
    program=${program#" "[A-Za-z]" "}
    at=${program%%" "*}
  done 2>/dev/null
  echo "$verdict$tab$(command_line)$tab$above" > "$mover"
}

# Under the turn of work tree $1: thing, before, after; `-` where nobody can tell.
note() {
  echo "hook$tab$2$tab$3$tab$4$tab$PPID$tab$git_start" >> "$1/durable/moves"
}

is_here() {
  [ "$1" -ef "$git_dir" ]
}

# What all work trees share; HEAD and its like of this git's own work tree only.
note_refs() {
  shared=yes
  if is_here "$1"; then shared=no; fi
  while read -r old new ref; do
    case $shared:$ref in
      *: | yes:refs/bisect/* | yes:refs/worktree/* | yes:refs/rewritten/*) ;;
      no:* | yes:refs/*) note "$1" "$ref" "$old" "$new" ;;
    esac
  done <<END
$input
END
}

# $2: where HEAD was; all zeros where a work tree is being made.
note_checkout() {
  if is_here "$1"; then
    read -r head < "$git_dir/HEAD"
    note "$1" HEAD - "$head"
    return
  fi
  case $2 in *[!0]*) return ;; esac
  case $git_dir in */worktrees/*) note "$1" "work tree ${git_dir##*/}" - there ;; esac
}

# The end of the index, its digest; of one that is about to be renamed into place too. A turn's lock is no index.
index_digest() {
  file=$git_dir/index
  line=
  [ ! -r "$file.lock" ] || IFS= read -r line < "$file.lock"
  case $line in DIRC*) file=$file.lock ;; esac
  set -- $(tail -c 20 "$file" | od -An -v -tx1)
  IFS=
  echo "$*"
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
  if [ -r "/proc/$PPID/cmdline" ]; then tr '\000\n\t' '   ' < "/proc/$PPID/cmdline"; else ps -o args= -p "$PPID"; fi
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
  while read -r old new ref; do
    case $ref in
      refs/remotes/* | refs/durable-remote/* | FETCH_HEAD) ;;
      refs/tags/*)
        case " $(command_line) " in *' fetch '* | *' fetch-pack '* | *' pull '*) ;; *) refuse ;; esac
        ;;
      '') ;;
      *)
        case $new in *[!0]*) ;; *) mend_log "$old" "$ref" ;; esac
        refuse
        ;;
    esac
  done <<END
$input
END
}

# Git has changed the reflog before it asks whether the ref may go: 'stash drop' has emptied it, 'branch -m' has moved it away. Git
# holds the ref's lock meanwhile. What is put back is what goes with the ref's value, and only where there is nothing.
mend_log() {
  if [ "$DURABLE_BYPASS" = "$turn" ]; then return 0; fi
  log=$common/logs/$2
  moved=$common/logs/refs/.tmp-renamed-log
  if [ "$2" = refs/stash ] && [ -f "$log" ] && [ ! -s "$log" ]; then
    none=$(printf %s "$1" | tr '[:xdigit:]' 0)
    who=$(git cat-file commit "$1" | sed -n 's/^committer //p; /^$/q')
    printf '%s %s %s\t%s\n' "$none" "$1" "$who" "$(git log -1 --format=%s "$1")" >> "$log"
  elif [ ! -e "$log" ] && [ -f "$moved" ]; then
    case $(tail -n 1 "$moved") in *" $1 "*) mv "$moved" "$log" ;; esac
  fi
} 2>/dev/null

# The branch that a fenced other work tree has checked out, and our own records, move for nobody else.
check_other() {
  read -r _ branch < "$1/HEAD"
  while read -r old new ref; do
    case $ref in
      "$branch" | refs/durable/*)
        case $new in *[!0]*) ;; *) mend_log "$old" "$ref" ;; esac
        refuse
        ;;
    esac
  done <<END
$input
END
}

case $name in
  reference-transaction | post-checkout)
    for state in "$common/durable/fence" "$common"/worktrees/*/durable/fence; do
      [ -f "$state" ] || continue
      other=${state%/durable/fence}
      case $name-$1 in
        reference-transaction-prepared)
          [ -z "$plain" ] || break
          is_fenced "$other" || continue
          if is_here "$other"; then check_refs; else check_other "$other"; fi
          ;;
        reference-transaction-committed) if witness "$other"; then note_refs "$other"; fi ;;
        post-checkout-*) if [ "$3" = 1 ] && witness "$other"; then note_checkout "$other" "$1"; fi ;;
      esac
    done
    ;;
  post-index-change)
    # Not where git was told of another index.
    if [ -f "$git_dir/durable/fence" ] && [ "${GIT_INDEX_FILE:-$git_dir/index}" -ef "$git_dir/index" ] && witness "$git_dir"; then
      note "$git_dir" index - "$(index_digest)"
    fi
    ;;
  *)
    if is_fenced "$git_dir"; then refuse; fi
    ;;
esac

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
