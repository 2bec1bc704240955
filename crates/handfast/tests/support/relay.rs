//! What a network between a store and its server does when it is not at its best.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use tokio::{
    net::{UnixListener, UnixStream},
    sync::watch,
};

/// Stands between the store and the server.
pub(crate) struct Relay {
    folder: tempfile::TempDir,
    /// How many connections there have been.
    connections: Arc<AtomicU32>,
    /// Every connection that was made before this number was raised is silent.
    silenced: watch::Sender<u32>,
}

impl Relay {
    /// Before the server of this URL; the URL of the relay.
    pub(crate) fn before(url: &str) -> (Self, String) {
        let (_, after) = url.split_once('@').expect("a user");
        let (host, database) = after.split_once('/').expect("a database");
        let server = format!("{}/.s.PGSQL.5432", host.replace("%2F", "/"));
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let (connections, (silenced, _)) = (Arc::new(AtomicU32::new(0)), watch::channel(0));
        tokio::spawn(accept(listener, server, connections.clone(), silenced.clone()));
        let host = folder.path().display().to_string().replace('/', "%2F");
        (Self { folder, connections, silenced }, format!("postgres://handfast@{host}/{database}"))
    }

    /// From now on nothing passes on the connections that there are. They stay open.
    pub(crate) fn silence(&self) {
        self.silenced.send_modify(|number| *number += 1);
    }

    pub(crate) fn connections(&self) -> u32 {
        assert!(self.folder.path().exists());
        self.connections.load(Ordering::SeqCst)
    }
}

async fn accept(listener: UnixListener, server: String, connections: Arc<AtomicU32>, silenced: watch::Sender<u32>) {
    while let Ok((mut client, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let (mut silenced, server) = (silenced.subscribe(), UnixStream::connect(&server).await);
        tokio::spawn(async move {
            let mut server = server.expect("the server");
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                _ = silenced.changed() => std::future::pending().await,
            }
        });
    }
}
