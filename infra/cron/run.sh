#!/bin/sh
# Runs a job from cron: never twice at once, with a log file for each run and an alert if it fails.
#
#   run.sh NAME COMMAND [ARGUMENT…]
#
# The argument @RUN_ID becomes today, as in 20261122, and @VERSION 2026.11.22; the variable
# RUN_ID sets another day, to resume an older run: RUN_ID=20261121 run.sh score …
# Settings: /etc/gaixie/gaixie.env, or the file that GAIXIE_ENV names.
#
# Exit code: the command's own; 75 if NAME still runs, so nothing was started; 64 for a wrong call.
set -u

say() { echo "run.sh: $*" >&2; }

[ $# -ge 2 ] || { say "expected NAME COMMAND [ARGUMENT…]"; exit 64; }
name=$1
shift
settings=${GAIXIE_ENV:-/etc/gaixie/gaixie.env}
if [ -r "$settings" ]; then
    set -a
    # shellcheck source=/dev/null
    . "$settings"
    set +a
fi
logs=${GAIXIE_LOGS:-/var/log/gaixie}
locks=${GAIXIE_LOCKS:-/var/lib/gaixie/locks}
run_id=${RUN_ID:-$(date +%Y%m%d)}
version=$(echo "$run_id" | sed 's/^\(....\)\(..\)\(..\)$/\1.\2.\3/')
for word in "$@"; do
    shift
    case $word in
    @RUN_ID) word=$run_id ;;
    @VERSION) word=$version ;;
    esac
    set -- "$@" "$word"
done
mkdir -p "$logs" "$locks" || exit

# The command holds the lock too, and so does all that it starts: it is free once the last has ended,
# however they ended.
exec 9>>"$locks/$name.lock"
if ! flock -n 9; then
    say "$name still runs; this start is skipped"
    exit 75
fi

log=$logs/$name-$run_id.log
find "$logs" -name "$name-*.log*" -mtime "+${GAIXIE_KEEP_LOGS_DAYS:-60}" -exec rm -f {} +
echo "== $(date -u +%FT%TZ) $*" >>"$log"
job='' stopped='' code=127
trap 'stopped=1; [ -z "$job" ] || kill -TERM "$job"' HUP INT TERM
"$@" >>"$log" 2>&1 &
job=$!
[ -z "$stopped" ] || kill -TERM "$job"  # a signal came before there was a job
while :; do
    stopped=''
    wait "$job"
    found=$?
    [ "$found" -ne 127 ] || break  # it was waited for already, or there was no such command
    code=$found
    [ -n "$stopped" ] || break  # else a signal may have ended the wait, not the job
done
trap - HUP INT TERM
echo "== $(date -u +%FT%TZ) exit code $code" >>"$log"

if [ "$code" -ne 0 ]; then
    say "$name failed with exit code $code: $log"
    if [ -n "${ALERT_COMMAND:-}" ]; then
        # shellcheck disable=SC2086  # a command and its arguments
        {
            tail -n 40 "$log"
            echo "command: $*"
            echo "log: $log"
            echo "to run it again: RUN_ID=$run_id, and the line of the crontab"
        } | $ALERT_COMMAND "$name" "$code" 9>&- || say "the alert failed: $ALERT_COMMAND"
    fi
fi
exit "$code"
