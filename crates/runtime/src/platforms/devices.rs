//! What all drivers of devices do alike: they list devices once, give each to one user at a time, number its queues, and keep the
//! kernels of code that they have loaded. Separate from the drivers, which differ in all else.

use super::{Error, Launch};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The devices of a platform, listed when a program first asks for one.
pub(super) struct Devices<D> {
    list: fn() -> Result<Vec<D>, Error>,
    listed: OnceLock<Result<Vec<Mutex<D>>, Error>>,
}

impl<D> Devices<D> {
    /// `list` gives the devices, in the order of their numbers; if there is none, the reason.
    pub const fn new(list: fn() -> Result<Vec<D>, Error>) -> Devices<D> {
        Devices { list, listed: OnceLock::new() }
    }

    fn all(&self) -> Result<&[Mutex<D>], Error> {
        let list = || Ok((self.list)()?.into_iter().map(Mutex::new).collect());
        self.listed.get_or_init(list).as_deref().map_err(Clone::clone)
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// Why the platform is not there.
    pub fn count(&self) -> Result<usize, Error> {
        self.all().map(<[_]>::len)
    }

    /// A device, for one user at a time.
    ///
    /// # Errors
    /// It does not exist.
    pub fn lock(&self, number: usize) -> Result<MutexGuard<'_, D>, Error> {
        let device = self.all()?.get(number).ok_or_else(|| format!("there is no device {number}"))?;
        Ok(device.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The devices that work.
///
/// # Errors
/// None does: why the last of them does not, or `none` if there is none.
pub(super) fn working<D>(all: impl Iterator<Item = Result<D, Error>>, none: &str) -> Result<Vec<D>, Error> {
    let mut why = none.to_string();
    let found: Vec<D> = all.filter_map(|made| made.map_err(|e| why = e).ok()).collect();
    if found.is_empty() { Err(why) } else { Ok(found) }
}

/// The queues of a device, in the order in which they were made; the first is there from the start.
pub(super) struct Queues<Q>(Vec<Q>);

impl<Q: Copy> Queues<Q> {
    pub fn new(first: Q) -> Queues<Q> {
        Queues(vec![first])
    }

    /// Adds a queue; returns its number.
    pub fn add(&mut self, queue: Q) -> usize {
        self.0.push(queue);
        self.0.len() - 1
    }

    /// A queue by its number.
    ///
    /// # Errors
    /// It does not exist.
    pub fn find(&self, number: usize) -> Result<Q, Error> {
        self.0.get(number).copied().ok_or_else(|| format!("the device has no queue {number}"))
    }

    /// One queue, or all.
    pub fn meant(&self, only: Option<usize>) -> impl Iterator<Item = Q> {
        let is_meant = move |number: usize| only.is_none_or(|only| only == number);
        self.0.iter().enumerate().filter(move |(number, _)| is_meant(*number)).map(|(_, &queue)| queue)
    }
}

/// Code that a device has loaded, by the address of its bytes, with those of its kernels that were asked for.
pub(super) struct Loaded<M, K>(HashMap<usize, (M, HashMap<String, K>)>);

impl<M, K> Loaded<M, K> {
    pub fn new() -> Loaded<M, K> {
        Loaded(HashMap::new())
    }
}

/// A device whose driver loads code with kernels.
pub(super) trait Loads {
    /// Loaded code.
    type Module: Copy;
    /// A kernel of it.
    type Kernel: Copy;

    fn loaded(&mut self) -> &mut Loaded<Self::Module, Self::Kernel>;

    /// Loads code, or what was kept of it.
    fn load(&mut self, code: &'static [u8]) -> Result<Self::Module, Error>;

    /// A kernel of loaded code, by its name.
    fn find(&mut self, module: Self::Module, name: &CStr) -> Result<Self::Kernel, Error>;

    /// The kernel of a launch. Its code is loaded once.
    fn kernel(&mut self, launch: &Launch) -> Result<Self::Kernel, Error> {
        let key = launch.code.as_ptr() as usize;
        let known = self.loaded().0.get(&key).map(|(module, kernels)| (*module, kernels.get(launch.kernel).copied()));
        let module = match known {
            Some((_, Some(kernel))) => return Ok(kernel),
            Some((module, None)) => module,
            None => {
                let module = self.load(launch.code)?;
                self.loaded().0.insert(key, (module, HashMap::new()));
                module
            }
        };
        let name = symbol(launch.kernel)?;
        let kernel = self.find(module, &name)?;
        if let Some((_, kernels)) = self.loaded().0.get_mut(&key) {
            kernels.insert(launch.kernel.into(), kernel);
        }
        Ok(kernel)
    }
}

/// A kernel's name for a driver.
pub(super) fn symbol(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| "its name has a zero byte".into())
}
