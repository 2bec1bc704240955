//! The floor of a resolve on PostgreSQL: `pgbench`, which knows no rules, sending selects over as many connections.

use std::path::{Path, PathBuf};

use handfast_testbed::Cluster;

use crate::{COLUMNS, CONNECTIONS, measure::Asked, postgres, shop::TENANT};

/// A table of its own, and the scripts.
pub struct Pgbench {
    url: String,
    folder: PathBuf,
}

/// The first of the numbers that stand for digests.
const FIRST: i64 = 1_000_000_000_000_000_001;

impl Pgbench {
    /// Fills a new database with so many rows.
    ///
    /// `pgbench` can choose a number at random, but no digest, and to have the server work one out would cost it what
    /// the library does not pay. So its digests are numbers of nineteen digits, as text: it sends what the library
    /// sends, a value for the primary key. They are too short for the table, whose check of them is dropped.
    pub async fn new(cluster: &Cluster, folder: &Path, rows: usize) -> Self {
        let url = cluster.database();
        let shop = postgres::shop(&url, 1).await;
        cluster.sql(&url, "ALTER TABLE handfast_handles DROP CONSTRAINT handfast_handles_digest_check");
        let numbers: Vec<String> = (FIRST..).take(rows).map(|number| number.to_string()).collect();
        let digests: Vec<&[u8]> = numbers.iter().map(String::as_bytes).collect();
        postgres::seed(cluster, &url, &shop, &digests).await;
        let number = format!("\\set number random({FIRST}, {})\n", numbers.last().expect("a row"));
        let script = |name: &str, sql: String| {
            std::fs::write(folder.join(name), format!("{number}{sql};\n")).expect("a script is written");
        };
        // What the library sends; and the least that could be sent, which tells neither the time nor the tenant apart.
        let same = format!("{} AND tenant IS NOT DISTINCT FROM :tenant", postgres::select_with_time(":number"));
        script("pgbench-same", same);
        script("pgbench-plain", format!("SELECT {COLUMNS} FROM handfast_handles WHERE digest = :number"));
        Self { url, folder: folder.to_owned() }
    }

    /// Transactions in one second, without the time that it takes to connect.
    pub fn rate(&self, cluster: &Cluster, script: &str, asked: &Asked<'_>) -> f64 {
        let connections = CONNECTIONS.to_string();
        let mut pgbench = cluster.client("pgbench");
        pgbench.args(["-n", "-M", "prepared", "-j", "2", "-c", &connections, "-D", &format!("tenant={TENANT}")]);
        pgbench.arg("-T").arg(asked.time.as_secs().max(1).to_string()).arg("-f").arg(self.folder.join(script));
        let output = pgbench.arg(self.url.rsplit('/').next().expect("a database")).output().expect("pgbench runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        rate.unwrap_or_else(|| panic!("pgbench: {text}{}", String::from_utf8_lossy(&output.stderr)))
    }
}
