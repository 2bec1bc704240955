//! `handfast gateway` and `handfast demo`: the guide works as it is written, in a clean folder, and bad input is told in one line.

mod support;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use support::{Ran, Scratch, handfast};

const GUIDE: &str = include_str!("../../../docs/guide/gateway.md");

/// A command that goes on running, and what it says.
struct Running {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, said }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it says something");
        line.trim().to_owned()
    }

    /// The last word of the first line that has this in it.
    fn told(&mut self, word: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "it has ended, and said nothing of {word}");
            if line.contains(word) {
                return line.rsplit(' ').next().expect("a word").to_owned();
            }
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn blocks(kind: &str) -> Vec<&'static str> {
    let begins = format!("```{kind}\n");
    let parts: Vec<&str> = GUIDE.split(begins.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect()
}

/// A port that was free a moment ago.
fn port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port().to_string()
}

/// The commands of the guide up to the probe, each with the ports and the tokens of this run.
#[test]
fn the_guide_works_as_it_is_written() {
    let scratch = Scratch::new("gateway-guide");
    let folder = scratch.path("clean");
    std::fs::create_dir(&folder).expect("a folder");
    let [server, issuer, front, admin] = [port(), port(), port(), port()];
    let here = |text: &str| {
        text.replace("9000", &server).replace("9001", &issuer).replace("8080", &front).replace("8081", &admin)
    };
    std::fs::write(folder.join("gateway.toml"), here(blocks("toml")[0])).expect("it can be written");
    let lines: Vec<String> = blocks("sh").iter().flat_map(|block| block.lines()).map(here).collect();
    let (mut running, mut tokens): (Vec<Running>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut probed, mut checked) = (Vec::new(), 0);
    for line in lines.iter().take_while(|line| !line.contains(" -- ")) {
        let words = line.split(' ').skip(1);
        let word = |word: &str| match word {
            "\"$ALICE\"" => tokens[0].clone(),
            "\"$BOB\"" => tokens[1].clone(),
            word => word.to_owned(),
        };
        let words: Vec<String> = words.map(word).collect();
        let mut command = handfast();
        command.current_dir(&folder).args(&words).stderr(Stdio::null());
        match words[0].as_str() {
            "twin" => {
                let mut twin = Running::start(&mut command);
                twin.line();
                running.push(twin);
            }
            "issuer" => {
                let mut issuer = Running::start(&mut command);
                tokens = vec![issuer.told("a: "), issuer.told("b: ")];
                running.push(issuer);
            }
            "gateway" if !line.contains("--check") => {
                let mut gateway = Running::start(&mut command);
                assert!(gateway.told("listening").contains(&front));
                running.push(gateway);
            }
            "probe" => probed.push((Ran::of(&mut command), line.clone())),
            _ => {
                let ran = Ran::of(&mut command);
                assert_eq!(ran.code, 0, "{line}: {ran:?}");
                checked += 1;
            }
        }
    }
    assert_eq!((checked, probed.len()), (3, 2), "{lines:?}");
    assert!(probed[0].0.code == 1 && probed[0].0.stdout.contains("confirmed  handle-foreign-principal"), "{probed:?}");
    assert!(probed[1].0.code == 0 && probed[1].0.stdout.contains("refuted    handle-foreign-principal"), "{probed:?}");
    let audit = std::fs::read_to_string(folder.join("audit.jsonl")).expect("an audit");
    assert!(audit.contains("\"foreign-principal\""));
    in_good_order(running.pop().expect("the gateway"), &folder);
}

/// The gateway reads its rules again, keeps the old ones where the new ones are wrong, and ends when it is told to.
fn in_good_order(mut gateway: Running, folder: &Path) {
    let rules = folder.join("rules.toml");
    std::fs::write(&rules, "version = 2").expect("it can be written");
    gateway.signal("HUP");
    gateway.signal("TERM");
    assert!(gateway.child.wait().expect("it ends").success());
}

#[test]
fn the_demo_shows_confirmed_before_and_refuted_after() {
    let ran = Ran::of(handfast().arg("demo"));
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in ["handle-foreign-principal", "state-tampered"] {
        let shown = ran.stdout.lines().find(|shown| shown.starts_with(line)).expect(line);
        let words: Vec<&str> = shown.split_whitespace().skip(1).collect();
        assert_eq!(words, ["confirmed", "refuted"], "{ran:?}");
    }
    let none = Ran::of(handfast().args(["demo", "--twin", "sound"]));
    assert_eq!(none.code, 1, "nothing is shown by a server that has no fault: {none:?}");
    assert_eq!(Ran::of(handfast().args(["demo", "--twin", "none"])).code, 2);
}

#[test]
fn what_cannot_be_run_is_told_in_one_line() {
    let scratch = Scratch::new("gateway-bad");
    let written = std::cell::Cell::new(0);
    let file = |name: &str, text: &str| {
        written.set(written.get() + 1);
        let path = scratch.path(&format!("{}-{name}", written.get()));
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    let (up, who) = (["--upstream", "http://127.0.0.1:9/mcp"], ["--identity-header", "X-User"]);
    let config = |text: &str| vec!["--config".to_owned(), file("gateway.toml", text)];
    let given = |parts: &[&[&str]]| parts.concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let rules = |text: &str| [given(&[&up, &who, &["--rules"]]), vec![file("rules.toml", text)]].concat();
    for (arguments, told) in [
        (given(&[]), "nobody could be told from anybody else"),
        (given(&[&up]), "bearer = true"),
        (given(&[&who]), "name the server behind: --upstream URL, or -- COMMAND"),
        (given(&[&up, &who, &["--", "python3", "server.py"]]), "only one server can be behind"),
        (given(&[&up, &who, &["--bearer"]]), "only one of `issuer`, `identity-header` and `bearer`"),
        (given(&[&up, &["--issuer", "https://id.example.com"]]), "audience: write the URI"),
        (given(&[&up, &["--identity-header", "X User"]]), "who.identity-header: it is no name of a header"),
        (given(&[&up, &who, &["--listen", "8080"]]), "write 127.0.0.1:8080"),
        (given(&[&up, &who, &["--listen", "0.0.0.0:8080"]]), "could name anybody in the identity header"),
        (given(&[&up, &who, &["--strict"]]), "strict: without `rules`"),
        (given(&[&up, &who, &["--rules", "/no/such/file"]]), "/no/such/file: No such file"),
        (given(&[&["--config", "/no/such/file"]]), "/no/such/file: No such file"),
        (config("listen = 8080"), "gateway.toml: TOML parse error at line 1"),
        (config("upstram = \"http://127.0.0.1:9/mcp\""), "unknown field `upstram`"),
        (
            config("[who]\nissuer = \"https://id.example.com\"\nclient-id = \"me\""),
            "takes `introspection`, `client-id` and",
        ),
        (
            config("[who]\nissuer = \"https://id.example.com\"\nalgorithms = [\"HS256\"]"),
            "who.algorithms: known are RS256",
        ),
        (config("[who]\nbearer = true\n[handles]\nlifetime = \"soon\""), "handles.lifetime: \"soon\" is no duration"),
        (config("[who]\nbearer = true\n[handles]\nlifetime = \"8d\""), "live for at most 24h"),
        (rules("version = 2"), "only 1 is known"),
        (rules("version = 1\n[[handle]]\nmint = \"open\"\n"), "[[handle]] of open: needs `pointer` or `pattern`"),
        (rules("version = 1\n[[handle]]\nmint = \"open\"\npointer = \"id\"\n"), "`id` is not a JSON Pointer"),
        (rules("version = 1\n[[handel]]\nmint = \"open\"\n"), "unknown field `handel`"),
    ] {
        let ran = Ran::of(handfast().args(["gateway", "--check"]).args(&arguments));
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(told), "{arguments:?}: {ran:?}");
    }
    let fine = Ran::of(handfast().args(["gateway", "--check"]).args(given(&[&up, &who])));
    assert_eq!((fine.code, fine.stdout.as_str()), (0, "the configuration can be run\n"), "{fine:?}");
}
