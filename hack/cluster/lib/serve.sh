#!/usr/bin/env bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Becomes a server of the cluster, inside its namespaces, after writing a record of itself.
#
# usage: serve.sh NAME COMMAND...
set -euo pipefail

name=$1
shift
# shellcheck source=process.sh
. "$(dirname "$0")/process.sh"
exec </dev/null >>"/run/cluster/log/$name.log" 2>&1
record_self "/run/cluster/pid/$name" /run/machine-proc
exec "$@"
