//! Round trips between processes, one pair after the other.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::endpoint::Incoming;
use super::wire::Wire;
use super::{Endpoint, Error, Message, Packet};
use crate::wait::patiently;
use crate::{Address, Error as LinkError, Failure};

/// A process that asks others for answers, and answers them.
///
/// All processes give the same number and addresses in the same order. A process answers only while
/// it [asks](Self::ask) or [answers](Self::answer_for).
#[derive(Debug)]
pub struct Pings {
    session: u32,
    rank: u32,
    wire: Wire,
    /// Number of the last question.
    asked: u32,
    /// Rank of whoever is asked, and the number of the question, until it is answered.
    open: Option<(u32, u32)>,
}

/// Answers of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTrips {
    /// Time from a question to its answer, for each that was asked once.
    pub times: Vec<Duration>,
    /// Number of questions that were answered.
    pub answered: u32,
    /// Number of times that a question was asked again which had not arrived. One that has arrived is
    /// repeated, too, as its answer may be lost; but mostly the other process is only late.
    pub retries: u32,
    /// The reason that the NIC gave for the last question that did not arrive, if it gave one.
    pub undelivered: Option<Failure>,
}

impl Pings {
    pub(super) fn new(
        endpoint: Endpoint,
        session: u32,
        members: &[Address],
    ) -> Result<Self, Error> {
        let (wire, rank) = Wire::new(endpoint, members)?;
        Ok(Self { session, rank, wire, asked: 0, open: None })
    }

    /// The position of this process among the addresses.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// Asks a process a number of times, one after the other. A question that is not answered within
    /// `retry` is asked again, until nothing was heard for `silence`.
    ///
    /// # Errors
    ///
    /// [`Error::Link`] is an error of this process's NIC. A process that does not answer is none.
    pub fn ask(
        &mut self,
        rank: u32,
        count: NonZeroU32,
        retry: Duration,
        silence: Duration,
    ) -> Result<RoundTrips, Error> {
        self.wire.open(rank)?;
        let mut trips = RoundTrips::default();
        for _ in 0..count.get() {
            self.asked = self.asked.wrapping_add(1);
            let (start, mut last, mut again) = (Instant::now(), Instant::now(), false);
            self.open = Some((rank, self.asked));
            self.send(rank, self.asked, Message::Ping);
            let answered = patiently(|| {
                self.progress()?;
                if self.open.is_none() {
                    return Ok(Some(true));
                }
                if start.elapsed() >= silence {
                    return Ok(Some(false));
                }
                if last.elapsed() >= retry {
                    (last, again) = (Instant::now(), true);
                    let under_way = u32::from(!self.wire.has_arrived(rank));
                    trips.retries = trips.retries.saturating_add(under_way);
                    self.send(rank, self.asked, Message::Ping);
                }
                Ok(None)
            })?;
            if !answered {
                trips.undelivered = self.wire.undelivered(rank);
                break;
            }
            trips.answered += 1;
            // Which of several questions it answers cannot be told.
            if !again {
                trips.times.push(start.elapsed());
            }
        }
        Ok(trips)
    }

    /// Answers others for a time.
    ///
    /// # Errors
    ///
    /// [`Error::Link`].
    pub fn answer_for(&mut self, time: Duration) -> Result<(), Error> {
        let start = Instant::now();
        patiently(|| {
            self.progress()?;
            Ok((start.elapsed() >= time).then_some(()))
        })?;
        Ok(())
    }

    /// Answers nobody any more.
    #[must_use]
    pub fn leave(self) -> Endpoint {
        self.wire.endpoint
    }

    fn send(&mut self, to: u32, number: u32, message: Message) {
        let packet = Packet { group: self.session, from: self.rank, transaction: number, message };
        self.wire.send(to, packet);
    }

    fn progress(&mut self) -> Result<(), LinkError> {
        while let Some(incoming) = self.wire.endpoint.next()? {
            let (from, packet) = match incoming {
                Incoming::Packet(from, packet) => (from, packet),
                Incoming::Sent(rank, result) => {
                    self.wire.sent(rank, result);
                    continue;
                }
            };
            if packet.group != self.session || !self.wire.is_from(&packet, from) {
                continue;
            }
            match packet.message {
                Message::Ping => {
                    self.wire.open(packet.from)?;
                    self.send(packet.from, packet.transaction, Message::Pong);
                }
                Message::Pong => {
                    self.open.take_if(|open| *open == (packet.from, packet.transaction));
                }
                _ => {}
            }
        }
        self.wire.check()
    }
}
