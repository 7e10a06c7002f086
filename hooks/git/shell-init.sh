# git-durable: when git fails under the fence of a turn, say whose it is. In ~/.profile: eval "$(durable shell-init)"
git() {
  command git "$@"
  set -- "$?"
  if [ "$1" -ne 0 ]; then
    set -- "$1" "$(command git rev-parse --absolute-git-dir 2>/dev/null)"
    if [ -f "$2/durable/fence" ] && grep -q '"turn":' "$2/index.lock" 2>/dev/null; then
      sed -n '6s/^/git-durable: /p' "$2/durable/fence" >&2
      echo 'git-durable: what it does: git durable status; beside it all the same, and recorded: git durable op --beside -- GIT ARGS' >&2
    fi
  fi
  return "$1"
}
