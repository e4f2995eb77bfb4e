// Finds a device by its name.
//
//   artel::KernelChoices choices;
//   choices.device = &artel::device_by_name("opencl:1");
//
// - "cpu": the CPU.
// - "opencl:1": the device with this number in the list of `artel devices`.
// - "opencl": one OpenCL device per worker of a machine, in order; shared if there are too few.
// - "auto": like "opencl", but without OpenCL CPUs; "cpu" if there is no other device.
//
// For "opencl", CPUs count only on machines without another OpenCL device.
//
// A device that fails its self-test is refused, unless " untested" follows its name, as in
// "opencl:1 untested".
#pragma once

#include <string>
#include <string_view>

#include "artel/exec/device.h"

namespace artel {

// Throws unless the name has one of these forms.
void check_device_name(std::string_view name);

// "opencl:1 untested" for "opencl:1".
std::string untested_device(std::string_view name);

struct DeviceUser {
  int place = 0;         // index among the workers of its machine (Cluster::place_on_machine)
  double timeout = 300;  // seconds after which a device that does not answer counts as hung
};

// Opens the device on the first call; it stays open until the program ends. Throws an error of kind
// unsupported without a loader, platform, or device, or for a device that fails its self-test, and
// of kind not_found for a number that does not exist. Thread safe.
Device& device_by_name(std::string_view name, const DeviceUser& user = {});

}  // namespace artel
