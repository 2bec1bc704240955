# Runs a PostgreSQL server until its standard input says how to end it, or ends itself.
# $1: the server programs; $2: the cluster's folder; further arguments go to the server.
bin=$1 folder=$2
shift 2
"$bin/postgres" -D "$folder/data" -k "$folder" "$@" >>"$folder/log" 2>&1 &
server=$!
if read -r signal; then
    kill -s "$signal" "$server"
    wait "$server"
else
    # Whoever started us is gone, however it ended: leave nothing behind.
    kill -s QUIT "$server"
    wait "$server"
    rm -rf "$folder"
fi
