//! SIGKILL at any moment, while clients are at work on two workspaces; again and again.
//!
//! Each client keeps plain readings of its tree. After each restart a tree is one of the two that the request under way
//! allows, every snapshot that was acknowledged is listed and gives back the reading taken when it was made, the store
//! is sound to its last byte, and nothing is left lying about.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use cofferdam_protocol::ckpt::{WsCkptRequest, WsCkptResponse, read_message, write_message};
use cofferdam_tests::dice::Dice;
use cofferdam_tests::site::{Daemon, Site, run};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::{PATIENCE, ask};
use cofferdam_tests::{effort, files, project};

use crate::site;

/// What a client knows.
#[derive(Clone, Debug)]
struct Known {
    /// The snapshots in the order in which they were taken.
    snapshots: Vec<(String, Tree)>,
    tree: Tree,
    /// What undo gives back.
    undo: Option<Tree>,
}

impl Known {
    fn ids(&self) -> Vec<String> {
        self.snapshots.iter().map(|(id, _)| id.clone()).collect()
    }

    fn becomes(&self, tree: &Tree) -> Self {
        // A rollback that changes nothing leaves alone what undoes the one before.
        let undo = match self.tree.differences(tree).is_empty() {
            true => self.undo.clone(),
            false => Some(self.tree.clone()),
        };
        Self { tree: tree.clone(), undo, ..self.clone() }
    }
}

/// What a client asks for.
#[derive(Debug)]
enum Wish {
    Request(WsCkptRequest),
    Undo,
}

/// One client and its workspace.
struct Client {
    ws: PathBuf,
    dice: Dice,
    taken: u32,
    known: Known,
    /// What it knows instead if the request under way is carried out.
    next: Option<Known>,
}

impl Client {
    fn new(site: &Site, name: &str, seed: u64) -> Self {
        let ws = site.path(name);
        for n in 0..12 {
            files::write(ws.join(format!("dir-{}/file-{n}", n % 4)), project::noise(100 + 500 * n));
        }
        let known = Known { snapshots: Vec::new(), tree: Tree::read(&ws), undo: None };
        Self { ws, dice: Dice::new(seed), taken: 0, known, next: None }
    }

    /// Asks for one thing after the other until nobody answers.
    fn work(&mut self, site: &Site, killed: &AtomicBool) {
        loop {
            self.change();
            let (wish, next) = self.wish();
            self.next = Some(next);
            let answered = match &wish {
                Wish::Request(request) => match call(&site.socket(), request) {
                    Some(WsCkptResponse::Error { code, message }) => panic!("{wish:?}: {code:?}: {message}"),
                    answer => answer.is_some(),
                },
                Wish::Undo => {
                    let ran = run(&mut site.ws_ckpt(&["undo", "-w", self.ws.to_str().unwrap()]));
                    assert!(ran.code == 0 || killed.load(Ordering::SeqCst), "{ran:?}");
                    ran.code == 0
                }
            };
            if !answered {
                assert!(killed.load(Ordering::SeqCst), "{wish:?}: the daemon hung up");
                return;
            }
            self.known = self.next.take().unwrap();
            self.known.tree.assert_same(&Tree::read(&self.ws), &format!("after {wish:?}"));
        }
    }

    /// Changes some files, as a user does.
    fn change(&mut self) {
        for _ in 0..self.dice.below(5) {
            let path = self.ws.join(format!("dir-{}/file-{}", self.dice.below(4), self.dice.below(12)));
            match self.dice.below(6) {
                0 => files::remove(&path),
                1 => {
                    files::remove(&path);
                    files::write(path.join("inside"), "a directory now");
                }
                2 => {
                    files::remove(&path);
                    files::mkdir(path.parent().unwrap());
                    files::symlink("nowhere", &path);
                }
                _ => {
                    files::remove(&path);
                    let len = self.dice.below(20_000) as usize;
                    files::write(&path, project::noise(len));
                }
            }
        }
        self.known.tree = Tree::read(&self.ws);
    }

    /// Something to ask for, and what is known once it is done.
    fn wish(&mut self) -> (Wish, Known) {
        let mut next = self.known.clone();
        let picked = self.dice.pick(&self.known.snapshots).cloned();
        match (self.dice.below(10), picked, &self.known.undo) {
            (0..3, Some((id, tree)), _) => {
                (Wish::Request(ask::rollback(&self.ws, &id)), self.known.becomes(&tree))
            }
            (3..5, _, Some(tree)) => {
                (Wish::Undo, Known { undo: Some(self.known.tree.clone()), ..self.known.becomes(tree) })
            }
            (5, Some((id, _)), _) => {
                next.snapshots.retain(|(other, _)| *other != id);
                (Wish::Request(ask::delete(&self.ws, &id, true)), next)
            }
            (6, Some(_), _) => {
                let keep = 3;
                next.snapshots.drain(..next.snapshots.len().saturating_sub(keep));
                (Wish::Request(ask::cleanup(&self.ws, Some(keep as u32))), next)
            }
            _ => {
                self.taken += 1;
                let id = format!("s{}", self.taken);
                next.snapshots.push((id.clone(), next.tree.clone()));
                (Wish::Request(ask::checkpoint(&self.ws, &id)), next)
            }
        }
    }

    /// Compares what is there after a restart with what is known. Says how many snapshots there are.
    fn compare(&mut self, daemon: &Daemon) -> u64 {
        let now = Tree::read(&self.ws);
        let ids = match daemon.call(&ask::list(&self.ws)) {
            WsCkptResponse::ListOk { snapshots } => snapshots.into_iter().map(|entry| entry.id).collect(),
            // Its registration was under way.
            WsCkptResponse::Error { .. } if self.known.snapshots.is_empty() => Vec::new(),
            other => panic!("{other:?}"),
        };
        let next = self.next.take();
        let fits = |known: &Known| known.ids() == ids && known.tree.differences(&now).is_empty();
        // If nothing tells the two apart, it may have been done: an undo then knows another tree.
        match next {
            Some(next) if fits(&next) => self.known = next,
            _ => {
                assert_eq!(self.known.ids(), ids, "{}", self.ws.display());
                self.known.tree.assert_same(&now, "neither what was there nor what was asked for");
            }
        }
        ids.len() as u64
    }

    /// Each snapshot gives back its reading, and undo what was there before the last of them.
    fn try_all(&mut self, daemon: &Daemon, site: &Site) {
        for (id, tree) in self.known.snapshots.clone() {
            daemon.rollback(&self.ws, &id);
            tree.assert_same(&Tree::read(&self.ws), &format!("snapshot {id}"));
            self.known = self.known.becomes(&tree);
        }
        if let Some(undo) = self.known.undo.clone() {
            let undone = run(&mut site.ws_ckpt(&["undo", "-w", self.ws.to_str().unwrap()]));
            assert_eq!(undone.code, 0, "{undone:?}");
            undo.assert_same(&Tree::read(&self.ws), "undone");
            self.known.undo = Some(std::mem::replace(&mut self.known.tree, undo));
        }
    }
}

/// A request on a connection of its own; `None` if the daemon is dead or dies over it.
fn call(socket: &Path, request: &WsCkptRequest) -> Option<WsCkptResponse> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write_message(&mut stream, request).ok()?;
    read_message(&mut stream).ok()?
}

/// How often the daemon is killed in one case.
const KILLS: u64 = 8;

#[test]
fn a_daemon_that_is_killed_at_any_moment_loses_nothing_that_it_acknowledged() {
    for seed in effort::seeds(2) {
        let site = site();
        let mut dice = Dice::new(seed ^ 0xc0ff);
        let mut clients =
            [("one", 0), ("two", 1)].map(|(name, nth)| Client::new(&site, name, seed.wrapping_mul(2) + nth));
        for kill in 0..KILLS {
            let daemon = site.start();
            let killed = AtomicBool::new(false);
            let (ended, end) = channel::<()>();
            std::thread::scope(|scope| {
                for client in &mut clients {
                    let (site, killed, ended) = (&site, &killed, ended.clone());
                    scope.spawn(move || {
                        client.work(site, killed);
                        drop(ended);
                    });
                }
                drop(ended);
                // Nobody sends anything: this is a moment that nothing in the daemon has to do with.
                let moment = Duration::from_micros(dice.below(700_000));
                let waited = end.recv_timeout(moment);
                assert_eq!(
                    waited,
                    Err(RecvTimeoutError::Timeout),
                    "seed {seed}: the daemon stopped answering"
                );
                killed.store(true, Ordering::SeqCst);
                daemon.kill();
            });
            let daemon = site.start();
            let count: u64 = clients.iter_mut().map(|client| client.compare(&daemon)).sum();
            assert_eq!(site.check(), count, "seed {seed}, kill {kill}");
            for client in &mut clients {
                client.try_all(&daemon, &site);
            }
            assert_eq!(files::names(site.state().join("ckpt/journal")), [""; 0], "seed {seed}, kill {kill}");
            daemon.kill();
        }
    }
}
