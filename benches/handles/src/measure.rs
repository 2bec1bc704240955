//! How speed is measured: the same way in both programs, which share this file.
#![expect(clippy::disallowed_methods, reason = "speed is measured in real time")]

use std::{
    io::{BufRead, Write},
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

/// What is measured: one call for one row.
pub trait Work: Send + 'static {
    /// One call, for the row of this number.
    fn once(&mut self, row: usize) -> impl Future<Output = ()> + Send;
}

/// What is asked for in one line: `p50 NAME MILLISECONDS` or `rate NAME MILLISECONDS`.
pub struct Asked<'r> {
    runtime: &'r Runtime,
    measure: String,
    /// For how long.
    pub time: Duration,
}

/// Answers each line of standard input with a number on standard output, until there are no more.
pub fn answer(runtime: &Runtime, mut measure: impl FnMut(&str, &Asked<'_>) -> f64) {
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line of text");
        let [asked, name, time] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("no question: {line}") };
        let time = Duration::from_millis(time.parse().expect("milliseconds"));
        let number = measure(name, &Asked { runtime, measure: asked.to_owned(), time });
        println!("{number}");
        std::io::stdout().flush().expect("somebody listens");
    }
}

impl Asked<'_> {
    /// The median time of one call in microseconds, by one task; or the calls in one second, by so many tasks, each
    /// with work of its own. Each call is for a row that is chosen at random.
    pub fn of<W: Work>(&self, tasks: usize, rows: usize, mut work: impl FnMut() -> W) -> f64 {
        match self.measure.as_str() {
            // As a task, not on the thread that waits for it: that is where a server's calls are made.
            "p50" => {
                let work = work();
                self.runtime.block_on(async { tokio::spawn(p50(work, rows, self.time)).await.expect("an answer") })
            }
            "rate" => {
                let work = (0..tasks).map(|_| work()).collect();
                self.runtime.block_on(rate(work, rows, self.time))
            }
            other => panic!("no measure: {other}"),
        }
    }
}

async fn p50(mut work: impl Work, rows: usize, time: Duration) -> f64 {
    let mut random = Random::new(0);
    let mut times = Vec::with_capacity(1 << 18);
    let begun = Instant::now();
    while begun.elapsed() < time {
        let row = random.below(rows);
        let asked = Instant::now();
        work.once(row).await;
        times.push(asked.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

async fn rate<W: Work>(work: Vec<W>, rows: usize, time: Duration) -> f64 {
    let begun = Instant::now();
    let task = |(seed, mut work): (u64, W)| async move {
        let mut random = Random::new(seed);
        let mut calls = 0_u32;
        while begun.elapsed() < time {
            for _ in 0..10 {
                work.once(random.below(rows)).await;
            }
            calls += 10;
            // A call that never waits would keep the other tasks from running at all.
            tokio::task::yield_now().await;
        }
        calls
    };
    let tasks: Vec<_> = (0..).zip(work).map(|work| tokio::spawn(task(work))).collect();
    let mut calls = 0;
    for task in tasks {
        calls += task.await.expect("a count");
    }
    f64::from(calls) / begun.elapsed().as_secs_f64()
}

/// Random numbers that cost nothing (SplitMix64): rows to ask for, and the letters of made-up handles.
pub struct Random(u64);

impl Random {
    /// Other numbers for every seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xa076_1d64_78bd_642f))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("below a usize")
    }
}
