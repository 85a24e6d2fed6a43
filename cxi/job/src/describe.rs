//! Services in words.

use cxi::{Service, VniAccess};

/// Returns the owner of a service: `uid 5588`, `everyone`, `the default service`.
pub(super) fn owner(service: &Service) -> String {
    if service.id().is_default() {
        return "default service".to_owned();
    }
    let members = match service.members() {
        None => "everyone".to_owned(),
        Some(members) if members.is_empty() => "no one".to_owned(),
        Some(members) => members.to_string(),
    };
    if service.is_system() {
        return format!("system service, {members}");
    }
    members
}

/// The VNIs of a service: `VNI 1024`, `VNIs 1024,1025`, `VNIs 1024-1031`, `no VNI`.
pub(super) fn vnis(access: VniAccess) -> String {
    match access {
        VniAccess::List(list) if list.is_empty() => "no VNI".to_owned(),
        VniAccess::List(list) if list.len() == 1 => format!("VNI {list}"),
        VniAccess::List(list) => format!("VNIs {list}"),
        VniAccess::Range(range) if range.size() == 1 => format!("VNI {}", range.first()),
        VniAccess::Range(range) => format!("VNIs {range}"),
        VniAccess::Unrestricted => "VNIs not restricted".to_owned(),
    }
}

/// A service with its owner and VNIs: `service 5 (uid 5588, VNI 1024)`.
pub(super) fn service(service: &Service) -> String {
    let state = if service.is_enabled() { "" } else { ", disabled" };
    format!("service {} ({}, {}{state})", service.id(), owner(service), vnis(service.vnis()))
}
