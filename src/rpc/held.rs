//! Answers that may not leave yet: encoded already, in the order of their calls, each with the mark it waits for and a note for the time it leaves.

use bytes::BytesMut;
use std::collections::VecDeque;

/// Held answers of one connection. Marks never fall, so a mark that is reached frees a prefix.
pub(crate) struct Held<N> {
    bytes: BytesMut,
    answers: VecDeque<Answer<N>>,
}

struct Answer<N> {
    mark: u64,
    /// Bytes.
    length: usize,
    note: Option<N>,
}

impl<N> Default for Held<N> {
    fn default() -> Held<N> {
        Held { bytes: BytesMut::new(), answers: VecDeque::new() }
    }
}

impl<N> Held<N> {
    /// Number of answers.
    pub(crate) fn len(&self) -> usize {
        self.answers.len()
    }
    /// The mark of the first answer.
    pub(crate) fn mark(&self) -> Option<u64> {
        self.answers.front().map(|answer| answer.mark)
    }
    /// Adds the answer that `write` appends.
    pub(crate) fn push(&mut self, mark: u64, note: Option<N>, write: impl FnOnce(&mut BytesMut)) {
        debug_assert!(self.answers.back().is_none_or(|last| last.mark <= mark));
        let before = self.bytes.len();
        write(&mut self.bytes);
        self.answers.push_back(Answer { mark, length: self.bytes.len() - before, note });
    }
    /// Appends to `out` the answers whose mark is reached, and hands over their notes; returns their number.
    pub(crate) fn release(&mut self, reached: u64, out: &mut BytesMut, noted: impl FnMut(N)) -> usize {
        let free = self.answers.iter().take_while(|answer| answer.mark <= reached);
        let (count, length) = free.fold((0, 0), |(count, sum), answer| (count + 1, sum + answer.length));
        if count == self.answers.len() && out.is_empty() {
            std::mem::swap(&mut self.bytes, out);
        } else {
            out.extend_from_slice(&self.bytes.split_to(length));
        }
        self.answers.drain(..count).filter_map(|answer| answer.note).for_each(noted);
        count
    }
    /// Marks and notes of the answers, in order, for a connection that is gone: the answers go nowhere.
    pub(crate) fn into_notes(self) -> impl Iterator<Item = (u64, N)> {
        self.answers.into_iter().filter_map(|answer| answer.note.map(|note| (answer.mark, note)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut;

    #[test]
    fn only_what_is_reached_leaves_and_in_order() {
        let (mut held, mut out, mut notes) = (Held::default(), BytesMut::new(), Vec::new());
        for (mark, answer) in [(1, "a"), (1, "bb"), (3, "c"), (4, "d")] {
            held.push(mark, Some(answer).filter(|a| *a != "c"), |bytes| bytes.put_slice(answer.as_bytes()));
        }
        let mut release = |held: &mut Held<&'static str>, reached, out: &mut BytesMut| {
            let count = held.release(reached, out, |note| notes.push(note));
            (count, held.mark(), notes.len())
        };
        assert_eq!(release(&mut held, 0, &mut out), (0, Some(1), 0));
        assert_eq!(release(&mut held, 2, &mut out), (2, Some(3), 2));
        assert_eq!(out[..], *b"abb");
        assert_eq!(release(&mut held, 9, &mut out), (2, None, 3));
        assert_eq!(out[..], *b"abbcd");
        out.clear();
        held.push(10, None, |bytes| bytes.put_slice(b"e"));
        assert_eq!(release(&mut held, 10, &mut out), (1, None, 3));
        assert_eq!(out[..], *b"e");
        assert_eq!(notes, ["a", "bb", "d"]);
        held.push(11, Some("f"), |bytes| bytes.put_slice(b"f"));
        assert_eq!(held.into_notes().collect::<Vec<_>>(), [(11, "f")]);
    }
}
