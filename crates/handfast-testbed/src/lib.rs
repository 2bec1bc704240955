//! A throwaway PostgreSQL for tests and benchmarks: started from nothing on a socket of its own, and gone without a
//! trace when the process that started it ends, however that ends.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// A PostgreSQL cluster.
pub struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    user: Option<String>,
    settings: Vec<String>,
    server: Mutex<Option<Child>>,
    databases: AtomicU32,
}

/// How a server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Connections are cut, and what is committed is written.
    Fast,
    /// The server is killed, as by a crash.
    Killed,
}

static SHARED: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(&["-c", "fsync=off"]));

impl Cluster {
    /// The cluster of this process, started by whoever needs it first. It does not wait for the disk.
    pub fn shared() -> &'static Self {
        &SHARED
    }

    /// A new cluster, with further arguments for the server.
    ///
    /// # Panics
    /// PostgreSQL is not installed, or does not start. Says what to do.
    #[must_use]
    pub fn start(settings: &[&str]) -> Self {
        let bin = programs();
        // Directly under the system's folder: the path of a socket has at most 107 bytes.
        let folder = tempfile::Builder::new().prefix("handfast-pg-").tempdir().expect("a temporary folder").keep();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let cluster =
            Self { bin, folder, user: user(), settings, server: Mutex::default(), databases: AtomicU32::new(0) };
        give(&cluster.folder);
        let data = cluster.folder.join("data");
        let mut initdb = cluster.as_user(&cluster.bin.join("initdb"));
        run(initdb.args(["-A", "trust", "-N", "-E", "UTF8", "--locale=C", "-U", "handfast", "-D"]).arg(data));
        cluster.start_again();
        cluster
    }

    /// Starts the server once more after [`Cluster::end`].
    ///
    /// # Panics
    /// It does not start within 30 seconds.
    pub fn start_again(&self) {
        let ready = || {
            let state = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap_or_default();
            state.lines().nth(7).is_some_and(|line| line.trim() == "ready")
        };
        for _ in 0..30 {
            let mut server = self.launch();
            for _ in 0..500 {
                if ready() {
                    *self.server() = Some(server);
                    return;
                }
                if server.try_wait().expect("a child").is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            // After a crash it may be that the last of the old processes has not ended yet.
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start:\n{log}");
    }

    /// Ends the server; its data stays.
    ///
    /// # Panics
    /// It does not run.
    pub fn end(&self, ending: Ending) {
        let mut server = self.server().take().expect("it runs");
        let signal = match ending {
            Ending::Fast => "INT\n",
            Ending::Killed => "KILL\n",
        };
        let pid = self.folder.join("data/postmaster.pid");
        server.stdin.take().expect("a pipe").write_all(signal.as_bytes()).expect("it listens");
        server.wait().expect("it ends");
        if ending == Ending::Killed {
            // What a killed server leaves behind would look like a server that is ready.
            std::fs::remove_file(pid).expect("left behind");
        }
    }

    /// A new, empty database: its URL.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        run(self.client("createdb").arg(&name));
        self.url(&name)
    }

    /// The URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://handfast@{}/{database}", self.folder.display().to_string().replace('/', "%2F"))
    }

    /// One of PostgreSQL's client programs (`psql`, `pg_dump`, `pgbench`), about to be run on this cluster.
    #[must_use]
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.arg("-h").arg(&self.folder).args(["-U", "handfast"]);
        command
    }

    /// Runs SQL in a database and returns what it printed.
    ///
    /// # Panics
    /// The SQL fails.
    pub fn sql(&self, url: &str, sql: &str) -> String {
        let database = url.rsplit('/').next().expect("a database");
        run(self.client("psql").args(["-v", "ON_ERROR_STOP=1", "-qAtc", sql, database]))
    }

    fn server(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self) -> Child {
        let mut command = self.as_user(Path::new("sh"));
        command.args(["-c", include_str!("cluster.sh"), "sh"]).arg(&self.bin).arg(&self.folder);
        command.args(&self.settings);
        if !self.settings.iter().any(|setting| setting.starts_with("listen_addresses")) {
            command.args(["-c", "listen_addresses="]);
        }
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("a shell")
    }

    /// A program, run as somebody whom PostgreSQL serves: it refuses to run as root.
    fn as_user(&self, program: &Path) -> Command {
        let Some(user) = &self.user else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={user}"), "--regid=nogroup", "--clear-groups"]).arg("--").arg(program);
        command.current_dir("/");
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut server) = self.server().take() {
            // The end of its input is what tells it to leave nothing behind.
            drop(server.stdin.take());
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Gives a file or a folder to whom servers run as, so that they can read what nobody else may.
///
/// # Panics
/// It cannot be given.
pub fn give(path: &Path) {
    if let Some(user) = user() {
        run(Command::new("chown").arg(user).arg(path));
    }
}

/// The folder of the server programs.
fn programs() -> PathBuf {
    let named = std::env::var_os("HANDFAST_POSTGRES_BIN").map(PathBuf::from);
    let mut debian: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    debian.sort();
    let mut path: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    path.reverse();
    let found = named.into_iter().chain(debian.into_iter().rev()).chain(path).find(|bin| bin.join("initdb").exists());
    found.expect(
        "PostgreSQL's server programs are missing: apt-get install postgresql, or name their folder in HANDFAST_POSTGRES_BIN",
    )
}

/// Whom the server runs as: nobody else, unless we are root.
fn user() -> Option<String> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    (id(&["-u"])? == "0").then(|| if id(&["-u", "postgres"]).is_some() { "postgres" } else { "nobody" }.to_owned())
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", command.get_program().display());
    out.into_owned()
}
