# shellcheck shell=bash
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes the volumes of persistent claims: folders of this machine, which are visible on every node. There
# is no provisioner; a fixed number of volumes waits for claims.

volume_count=${VOLUMES:-16}

# volume_objects makes the folders, writable by the uid that the product's images run as, and
# prints their PersistentVolumes.
volume_objects() {
	local number name
	for ((number = 1; number <= volume_count; number++)); do
		name=$(printf 'local-%02d' "$number")
		[[ -d $state/volumes/$name ]] || install -D -d -m 777 -o 65532 -g 65532 "$state/volumes/$name"
		cat <<-END
			---
			apiVersion: v1
			kind: PersistentVolume
			metadata: {name: $name}
			spec:
			  storageClassName: local
			  capacity: {storage: 10Gi}
			  accessModes: [ReadWriteOnce, ReadOnlyMany, ReadWriteMany]
			  persistentVolumeReclaimPolicy: Retain
			  hostPath: {path: /run/cluster/volumes/$name, type: Directory}
		END
	done
}

# free_released_volumes empties the volumes whose claims were deleted and offers them again.
free_released_volumes() {
	local name
	for name in $(kubectl get persistentvolumes -o jsonpath="{.items[?(@.status.phase=='Released')].metadata.name}"); do
		say "emptying volume $name"
		find "${state:?}/volumes/$name" -mindepth 1 -delete
		kubectl patch persistentvolume "$name" --type=json \
			--patch='[{"op": "remove", "path": "/spec/claimRef"}]' >/dev/null
	done
}
