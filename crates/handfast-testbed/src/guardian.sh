# Waits until whoever started it is gone, however that ended, and then leaves nothing behind.
# $1: the server programs; $2: the cluster's folder.
read -r _
"$1/pg_ctl" -D "$2/data" -m immediate -w stop >/dev/null 2>&1
rm -rf "$2"
