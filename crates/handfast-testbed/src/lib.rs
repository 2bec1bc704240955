//! A throwaway PostgreSQL for tests and benchmarks: started from nothing on a socket of its own, and gone without a
//! trace when the process that started it ends, however that ends.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// A PostgreSQL cluster.
pub struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    settings: Vec<String>,
    guardian: Child,
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
        give(&folder);
        let mut guardian = as_user(Path::new("sh"));
        guardian.args(["-c", include_str!("guardian.sh"), "sh"]).arg(&bin).arg(&folder);
        guardian.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guardian = guardian.spawn().expect("a shell");
        let mut settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        if !settings.iter().any(|setting| setting.starts_with("listen_addresses")) {
            settings.extend(["-c".to_owned(), "listen_addresses=".to_owned()]);
        }
        let cluster = Self { bin, folder, settings, guardian, databases: AtomicU32::new(0) };
        let mut initdb = as_user(&cluster.bin.join("initdb"));
        run(initdb.args(["-A", "trust", "-N", "-E", "UTF8", "--locale=C", "-U", "handfast", "-D"]).arg(cluster.data()));
        cluster.start_again();
        cluster
    }

    /// Starts the server once more after [`Cluster::end`], and waits until it answers.
    ///
    /// # Panics
    /// It does not start.
    pub fn start_again(&self) {
        let quoted: Vec<String> = self.settings.iter().map(|setting| format!("'{setting}'")).collect();
        let options = format!("-k '{}' {}", self.folder.display(), quoted.join(" "));
        for _ in 0..100 {
            let mut start = self.control("start");
            start.args(["-t", "120", "-o", &options, "-l"]).arg(self.folder.join("log"));
            if start.output().expect("pg_ctl runs").status.success() {
                return;
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
        match ending {
            Ending::Fast => drop(run(self.control("stop").args(["-m", "fast"]))),
            Ending::Killed => {
                let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).expect("it runs");
                run(Command::new("kill").args(["-s", "KILL", pid.lines().next().expect("its number")]));
                // The processes that serve connections go on until they notice that their parent is gone.
                for _ in 0..3000 {
                    if !self.serves() {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                panic!("PostgreSQL was killed and goes on");
            }
        }
    }

    /// Whether a process of the server is left: each of them works in the folder of its data.
    fn serves(&self) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        let data = self.data();
        processes.flatten().any(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == data))
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn control(&self, what: &str) -> Command {
        let mut command = as_user(&self.bin.join("pg_ctl"));
        command.arg("-D").arg(self.data()).args(["-w", what]);
        command
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
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The end of its input is what tells the guardian to leave nothing behind.
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

/// A program, run as somebody whom PostgreSQL serves: it refuses to run as root.
fn as_user(program: &Path) -> Command {
    let mut command = match user() {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), "--regid=nogroup", "--clear-groups"]).arg("--").arg(program);
            command
        }
    };
    command.current_dir("/");
    command
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
