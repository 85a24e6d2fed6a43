//! The link, and what has become of it so far.

use std::time::Duration;

/// Number of restarts whose times the driver keeps.
pub(crate) const RESTARTS: usize = 10;

/// The link of a NIC.
#[derive(Debug)]
pub(crate) struct Link {
    is_up: bool,
    /// Number of times that the link has come up.
    pub(crate) ups: u64,
    /// Number of times that it has gone down.
    pub(crate) downs: u64,
    /// When it restarted, since the Unix epoch; zero for an unused place.
    pub(crate) restarts: [Duration; RESTARTS],
    /// The place of the next restart.
    next: usize,
}

impl Link {
    /// A link that has come up once, or not yet.
    pub(crate) fn new(is_up: bool) -> Self {
        let restarts = [Duration::ZERO; RESTARTS];
        Self { is_up, ups: is_up.into(), downs: 0, restarts, next: 0 }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Takes the link up or down.
    pub(crate) fn set(&mut self, up: bool) {
        if self.is_up != up {
            self.is_up = up;
            *(if up { &mut self.ups } else { &mut self.downs }) += 1;
        }
    }

    /// Notes a restart: the link goes down, if it was up, and comes up again.
    pub(crate) fn restart(&mut self, at: Duration) {
        self.set(false);
        self.set(true);
        if let Some(place) = self.restarts.get_mut(self.next) {
            *place = at;
        }
        self.next = (self.next + 1) % RESTARTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_restart_takes_the_place_of_the_first() {
        let mut link = Link::new(true);
        for second in 1..=11 {
            link.restart(Duration::from_secs(second));
        }
        let seconds = link.restarts.map(|at| at.as_secs());
        assert_eq!(seconds, [11, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!((link.ups, link.downs), (12, 11));
    }

    #[test]
    fn a_link_that_is_down_only_comes_up() {
        let mut link = Link::new(false);
        link.set(false);
        link.restart(Duration::from_secs(1));
        assert_eq!((link.is_up(), link.ups, link.downs), (true, 1, 0));
    }
}
