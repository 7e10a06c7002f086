# What bash runs first (BASH_ENV) in the processes of a turn: a login profile (bash -lc) may have put PATH anew, and the turn's
# git has to come first on it. The user's own BASH_ENV runs before that, as bash would have run it.
if [ -n "$DURABLE_BASH_ENV" ]; then eval ". \"$DURABLE_BASH_ENV\""; fi
case $PATH in "$DURABLE_SHIM":*) ;; *) [ -z "$DURABLE_SHIM" ] || PATH=$DURABLE_SHIM:$PATH ;; esac
