// Finds OpenCL devices.
#include "artel/base/error.h"
#include "artel/exec/opencl/device.h"

namespace artel::opencl {
namespace {

template <typename Get>
std::string text_of(const Get& get) {
  size_t bytes = 0;
  if (get(0, nullptr, &bytes) != kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(bytes, text.data(), nullptr) != kSuccess) return {};
  text.resize(std::min(text.find('\0'), text.size()));
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

template <typename T>
T value_of(const Api& api, DeviceId device, DeviceInfo info) {
  T value{};
  api.get_device_info(device, info, sizeof value, &value, nullptr);
  return value;
}

Description describe_device(const Api& api, PlatformId platform, DeviceId device) {
  const auto text = [&](DeviceInfo info) {
    return text_of([&](size_t bytes, void* to, size_t* needed) {
      return api.get_device_info(device, info, bytes, to, needed);
    });
  };
  const auto platform_text = [&](PlatformInfo info) {
    return text_of([&](size_t bytes, void* to, size_t* needed) {
      return api.get_platform_info(platform, info, bytes, to, needed);
    });
  };
  return {.platform = platform,
          .device = device,
          .name = text(DeviceInfo::name),
          .vendor = text(DeviceInfo::vendor),
          .driver = text(DeviceInfo::driver),
          .version = text(DeviceInfo::version),
          .platform_name = platform_text(PlatformInfo::name),
          .platform_version = platform_text(PlatformInfo::version),
          .is_cpu = (value_of<uint64_t>(api, device, DeviceInfo::type) & kCpuType) != 0,
          .available = value_of<uint32_t>(api, device, DeviceInfo::available) != 0,
          .has_compiler = value_of<uint32_t>(api, device, DeviceInfo::compiler) != 0,
          .adds_exactly = (~value_of<uint64_t>(api, device, DeviceInfo::single_precision) &
                           (kSubnormals | kRoundsToNearest)) == 0,
          .compute_units = value_of<uint32_t>(api, device, DeviceInfo::compute_units),
          .memory = value_of<uint64_t>(api, device, DeviceInfo::memory),
          .largest_allocation = value_of<uint64_t>(api, device, DeviceInfo::largest_allocation),
          .work_group_size = value_of<size_t>(api, device, DeviceInfo::work_group_size)};
}

template <typename Condition>
std::vector<int> numbers_of(const std::vector<Description>& all, const Condition& condition) {
  std::vector<int> numbers;
  for (size_t i = 0; i < all.size(); ++i)
    if (condition(all[i])) numbers.push_back(static_cast<int>(i));
  return numbers;
}

}  // namespace

std::string Description::problem() const {
  if (!available) return "the driver reports that the device is not available";
  if (!has_compiler) return "the driver has no compiler for the device";
  if (work_group_size < kLargestWorkGroup)
    return fmt::format("its work groups have at most {} items, expected {} or more",
                       work_group_size, kLargestWorkGroup);
  return {};
}

std::vector<int> devices_to_spread(const std::vector<Description>& all) {
  const auto is_usable = [](const Description& one) { return one.problem().empty(); };
  std::vector<int> chosen =
      numbers_of(all, [&](const Description& one) { return is_usable(one) && !one.is_cpu; });
  if (chosen.empty()) chosen = numbers_of(all, is_usable);
  if (chosen.empty()) chosen = numbers_of(all, [](const Description&) { return true; });
  return chosen;
}

std::vector<Description> find_devices() {
  std::string problem;
  const Api* const api = find_api(problem);
  require(api != nullptr, ErrorKind::unsupported, "[opencl] {}", problem);
  uint32_t count = 0;
  const Status status = api->get_platforms(0, nullptr, &count);
  require(status == kSuccess && count > 0, ErrorKind::unsupported,
          "[opencl] no platform: no driver is installed ({}); install the OpenCL driver of your "
          "device, or pocl-opencl-icd to try it on the processor",
          describe(status == kSuccess ? kNoPlatform : status));
  std::vector<PlatformId> platforms(count);
  api->get_platforms(count, platforms.data(), nullptr);
  std::vector<Description> all;
  for (const PlatformId platform : platforms) {
    uint32_t found = 0;
    if (api->get_devices(platform, kAllTypes, 0, nullptr, &found) != kSuccess) continue;
    std::vector<DeviceId> devices(found);
    if (found == 0 ||
        api->get_devices(platform, kAllTypes, found, devices.data(), nullptr) != kSuccess)
      continue;
    for (const DeviceId device : devices) all.push_back(describe_device(*api, platform, device));
  }
  require(!all.empty(), ErrorKind::unsupported, "[opencl] no device found on {} platform(s)",
          count);
  return all;
}

}  // namespace artel::opencl
