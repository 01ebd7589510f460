//! Queues of devices, and events: marks in a queue that others wait for. Separate from [`anydsl`](crate::anydsl), whose
//! functions know one queue for each device.
//!
//! Devices are numbers of [`platforms`](crate::platforms), with their queue. An event is a number, too, from 1; it stays
//! until it is freed. A function that cannot do what it is asked for says so on standard error and ends the process with code 1.

use crate::guard::{Ending, end};
use crate::platforms::{Device, Error, Mark, n_devices};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Events that are recorded and not freed.
struct Events {
    by_number: BTreeMap<i64, (Device, Mark)>,
    /// The number of the last one.
    last: i64,
}

static EVENTS: Mutex<Events> = Mutex::new(Events { by_number: BTreeMap::new(), last: 0 });

fn events() -> MutexGuard<'static, Events> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(event: i64) -> Result<(Device, Mark), Error> {
    let found = events().by_number.get(&event).copied();
    found.ok_or_else(|| format!("{event} is no event, or was freed before"))
}

fn or_exit<T>(what: &str, result: Result<T, Error>) -> T {
    result.unwrap_or_else(|message| end(Ending::of_device(&format!("{what}: {message}"))))
}

/// How many devices a platform has; 0 if it is not there.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_n_devices(platform: i32) -> i32 {
    n_devices(platform)
}

/// Makes a queue; returns the device's number with this queue. Queues stay until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_make_queue(device: i32) -> i32 {
    /// Queues have numbers of so many bits.
    const MAX: usize = 0x7fff;
    let make = || {
        let device = Device::find(device)?;
        match device.platform.make_queue(device.number)? {
            queue if queue <= MAX => Ok(device.id_with(queue)),
            _ => Err(format!("a device has at most {MAX} queues")),
        }
    };
    or_exit("cannot make a queue", make())
}

/// An event after all that is in the device's queue.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_event_record(device: i32) -> i64 {
    let record = || {
        let device = Device::find(device)?;
        let mark = device.platform.mark(device.at())?;
        let mut events = events();
        events.last += 1;
        let number = events.last;
        events.by_number.insert(number, (device, mark));
        Ok(number)
    };
    or_exit("cannot record an event", record())
}

/// Waits until all before the event has ended.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_event_wait(event: i64) {
    let waited = find(event).and_then(|(device, mark)| device.platform.wait(device.number, mark));
    or_exit("cannot wait for an event", waited)
}

/// Whether all before the event has ended.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_event_is_over(event: i64) -> bool {
    let asked = find(event).and_then(|(device, mark)| device.platform.is_over(device.number, mark));
    or_exit("cannot ask for an event", asked)
}

/// The nanoseconds between two events of one device, which have ended.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_event_elapsed(from: i64, to: i64) -> i64 {
    let elapsed = || {
        let ((device, from), (other, to)) = (find(from)?, find(to)?);
        if !device.is_device_of(other) {
            return Err("they are events of two devices".into());
        }
        device.platform.elapsed(device.number, from, to)
    };
    or_exit("cannot tell the time between two events", elapsed())
}

/// Lets all that is put into the device's queue from now on wait for the event. The host waits itself if the event is
/// another device's.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_event_follow(device: i32, event: i64) {
    let follow = || {
        let (device, (other, mark)) = (Device::find(device)?, find(event)?);
        match device.is_device_of(other) {
            true => device.platform.follow(device.at(), mark),
            false => other.platform.wait(other.number, mark),
        }
    };
    or_exit("a queue cannot wait for an event", follow())
}

/// Frees an event. Queues that wait for it go on waiting.
#[unsafe(no_mangle)]
pub extern "C" fn nyala_event_free(event: i64) {
    let removed = events().by_number.remove(&event);
    let removed = removed.ok_or_else(|| format!("{event} is no event, or was freed before"));
    let (device, mark) = or_exit("cannot free an event", removed);
    device.platform.forget(device.number, mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_host_have_ended() {
        assert_eq!((nyala_n_devices(0), nyala_n_devices(-1), nyala_n_devices(77)), (1, 0, 0));
        let (a, b) = (nyala_make_queue(0), nyala_make_queue(0));
        assert!(a != b && Device::find(a).is_ok_and(|d| d.queue == (a >> 16) as usize && d.id_with(d.queue) == a));
        let (from, to) = (nyala_event_record(a), nyala_event_record(b));
        nyala_event_follow(b, from);
        nyala_event_wait(to);
        assert!(nyala_event_is_over(to) && nyala_event_elapsed(from, to) >= 0);
        nyala_event_free(from);
        assert!(find(from).is_err() && find(to).is_ok());
    }
}
