//! Checkpoints, rollback and diff of one tree, beside its rivals.

use std::path::PathBuf;

use cofferdam_protocol::ckpt::WsCkptRequest;
use cofferdam_tests::mount::Mount;
use cofferdam_tests::process::{peak_kib, resident_kib};
use cofferdam_tests::site::{Daemon, Site};
use cofferdam_tests::user;
use cofferdam_tests::wire::ask;

use crate::rivals::{Git, Restic, find, size_of};
use crate::syncs::Syncs;
use crate::table::{Times, head, limit, line};
use crate::{site, tree};

/// How often what is warm is measured.
const ROUNDS: u64 = 11;

/// A site whose files go with their filesystem, where that is possible.
struct Ground {
    _mount: Option<Mount>,
    root: PathBuf,
    site: Site,
}

impl Ground {
    fn new(files: u64) -> Self {
        let mut site = site();
        let root = site.directory("ground");
        // Twice for git's objects, and a rival beside it.
        let mount = user::is_root().then(|| Mount::journaled_ext4(&root, 1024 + files / 25));
        site.set_state(root.join("state"));
        Self { _mount: mount, root, site }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// How often the daemon syncs for one request.
fn syncs_of(daemon: &Daemon, request: &WsCkptRequest) -> Option<usize> {
    let syncs = Syncs::count(daemon.pid())?;
    daemon.call(request);
    Some(syncs.stop())
}

/// Everything about a tree of that many files.
pub(crate) fn measure(files: u64) {
    let ground = Ground::new(files);
    let tree = ground.at("tree");
    tree::make(&tree, files);
    let daemon = ground.site.start();
    head(&format!("{files} files in {}", ground.root.display()));

    let idle = resident_kib(daemon.pid());
    let (mut ours, mut gits) = (Times::default(), Times::default());
    // Whoever is first does not pay for what is read from the disk for the first time.
    find(&tree);
    ours.add(|| daemon.checkpoint(&tree, "first"));
    let git = gits.add(|| {
        let git = Git::init(ground.at("git"), &tree);
        git.commit();
        git
    });
    line("first checkpoint", "ms", ours.ms(), ("git", gits.ms()), Some(0.25));
    let restic = Restic::init(ground.at("restic"));
    if let Some(restic) = &restic {
        let mut times = Times::default();
        times.add(|| restic.backup(&tree));
        line("", "ms", ours.ms(), ("restic", times.ms()), None);
    }
    let [store, packed] = [size_of(ground.site.state()), git.packed_size()].map(|size| size as f64 / 1e6);
    line("size of the store", "MB", store, ("git, packed", packed), Some(1.1));

    for (what, changes, of_find, of_git) in
        [("checkpoint, unchanged", false, 0.7, None), ("checkpoint, 10 changed", true, 0.8, Some(0.25))]
    {
        let [mut ours, mut finds, mut gits, mut restics]: [Times; 4] = Default::default();
        for round in 0..ROUNDS {
            if changes {
                tree::change_ten(&tree, files, round);
            }
            let id = format!("{changes}-{round}");
            ours.add(|| daemon.checkpoint(&tree, &id));
            finds.add(|| find(&tree));
            gits.add(|| git.commit());
            restic
                .iter()
                .take(if round < 3 { 1 } else { 0 })
                .for_each(|restic| restics.add(|| restic.backup(&tree)));
        }
        line(what, "ms", ours.ms(), ("find", finds.ms()), Some(of_find));
        line("", "ms", ours.ms(), ("git add + commit", gits.ms()), of_git);
        if restic.is_some() {
            line("", "ms", ours.ms(), ("restic", restics.ms()), None);
        }
    }

    let newest = format!("true-{}", ROUNDS - 1);
    let before = format!("true-{}", ROUNDS - 2);
    let (mut ours, mut gits) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        ours.add(|| assert!(!daemon.diff(&tree, &before, &newest).is_empty()));
        gits.add(|| git.diff());
    }
    line("diff of two snapshots", "ms", ours.ms(), ("git diff", gits.ms()), None);
    limit("", "ms", ours.ms(), Some(10.0));

    let (mut ours, mut gits) = (Times::default(), Times::default());
    for round in 0..ROUNDS {
        tree::change_ten(&tree, files, 100 + round);
        ours.add(|| daemon.rollback(&tree, &newest));
        tree::change_ten(&tree, files, 100 + round);
        gits.add(|| git.reset());
    }
    line("rollback, 10 dirty", "ms", ours.ms(), ("git reset + clean", gits.ms()), Some(0.4));

    let syncs = [
        ("checkpoint, unchanged", ask::checkpoint(&tree, "still"), false),
        ("checkpoint, 10 changed", ask::checkpoint(&tree, "moved"), true),
        ("rollback, 10 dirty", ask::rollback(&tree, &newest), true),
    ];
    for (what, request, changes) in syncs {
        if changes {
            tree::change_ten(&tree, files, 1000);
        }
        if let Some(syncs) = syncs_of(&daemon, &request) {
            limit(&format!("{what}: syncs"), "", syncs as f64, None);
        }
    }
    limit("memory, idle", "MB", idle as f64 / 1e3, Some(40.0));
    limit("memory, the most it took", "MB", peak_kib(daemon.pid()) as f64 / 1e3, Some(250.0));
}

/// Checkpoints and diff of one directory that has everything in it.
pub(crate) fn measure_flat(files: u64) {
    let ground = Ground::new(files);
    let tree = ground.at("tree");
    tree::make_flat(&tree, files);
    let daemon = ground.site.start();
    head(&format!("{files} files in one directory"));
    daemon.checkpoint(&tree, "first");
    let [mut ours, mut finds, mut diffs]: [Times; 3] = Default::default();
    let mut last = "first".to_owned();
    for round in 0..ROUNDS {
        tree::change_ten_flat(&tree, files, round);
        let id = round.to_string();
        ours.add(|| daemon.checkpoint(&tree, &id));
        finds.add(|| find(&tree));
        diffs.add(|| assert!(!daemon.diff(&tree, &last, &id).is_empty()));
        last = id;
    }
    line("checkpoint, 10 changed", "ms", ours.ms(), ("find", finds.ms()), Some(0.8));
    limit("diff of two snapshots", "ms", diffs.ms(), Some(10.0));
    limit("memory, the most it took", "MB", peak_kib(daemon.pid()) as f64 / 1e3, Some(250.0));
}
