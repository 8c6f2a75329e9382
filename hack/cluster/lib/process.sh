# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Records of running processes. A record holds the machine's pid and the start time, so that a pid
# that was reused is not taken for the old process.

# record_self FILE PROC writes a record of the calling process; PROC is a mount of the machine's
# /proc. It must not run in a subshell: the record would be the subshell's.
record_self() {
	local line fields
	read -r line <"$2/self/stat"
	read -r -a fields <<<"${line##*) }"
	printf '%s %s\n' "${line%% *}" "${fields[19]}" >"$1.partial"
	mv "$1.partial" "$1"
}

# process_alive FILE says whether the recorded process runs. One that has ended and was not yet
# waited for does not.
process_alive() {
	local pid started line fields
	[[ -s $1 ]] || return 1
	read -r pid started <"$1"
	line=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
	read -r -a fields <<<"${line##*) }"
	[[ ${fields[0]} != [ZX] && ${fields[19]} == "$started" ]]
}

process_has_ended() {
	! process_alive "$1"
}

# recorded_pid FILE prints the pid of a record.
recorded_pid() {
	cut -d ' ' -f 1 "$1"
}

# end_process FILE kills the recorded process and waits until it has ended.
end_process() {
	process_alive "$1" || return 0
	kill -KILL "$(recorded_pid "$1")" 2>/dev/null || true
	wait_until 20 "process $(recorded_pid "$1") to end" process_has_ended "$1"
}
