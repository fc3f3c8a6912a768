//! What a person sees when gnoma reads its configuration: whole files in, settings and words out.

// `cfg(test)` tells the lints that helpers are tests, too.
#[cfg(test)]
mod errors;
#[cfg(test)]
mod features;
#[cfg(test)]
mod home;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod profiles;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod trust;
