#include "artel/exec/opencl/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/lost_device.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/exec/opencl/program_cache.h"
#include "artel/exec/opencl/source.h"

namespace artel::opencl {
namespace {

constexpr size_t kAlignment = 64, kPage = 4096;

size_t padded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Argument::Argument(int64_t value) : kind_(Kind::integer), integer_(static_cast<int32_t>(value)) {
  require(value == integer_, ErrorKind::unsupported,
          "[opencl] got a tensor extent of {}, expected less than 2^31; use smaller batches or the "
          "device \"cpu\"",
          value);
}

Range items(int64_t n) { return {{padded(static_cast<size_t>(n), kItems), 1, 1}, {kItems, 1, 1}}; }

Range groups(int64_t n) { return {{static_cast<size_t>(n) * kItems, 1, 1}, {kItems, 1, 1}}; }

OpenClDevice::OpenClDevice(const Api& api, Description description, int number, double timeout)
    : api_(api),
      description_(std::move(description)),
      number_(number),
      timeout_(timeout),
      process_(::getpid()) {
  const std::string problem = description_.problem();
  require(problem.empty(), ErrorKind::unsupported, "{}: {}", name(), problem);
  Status status = kSuccess;
  context_ = api_.create_context(nullptr, 1, &description_.device, nullptr, nullptr, &status);
  check(status, "creating a context");
  queue_ = api_.create_queue(context_, description_.device, 0, &status);
  check(status, "creating a queue");
}

std::string OpenClDevice::name() const {
  return fmt::format("opencl:{} ({})", number_, description_.name);
}

std::string OpenClDevice::facts() const {
  return fmt::format("{}, driver {}, {}", description_.name, description_.driver,
                     description_.platform_version);
}

void OpenClDevice::check(Status status, std::string_view doing) const {
  if (status != kSuccess)
    fail(ErrorKind::unsupported, "{}: {} failed: {}", name(), doing, describe(status));
}

void OpenClDevice::check_work(Status status, std::string_view doing) const {
  if (status != kSuccess)
    throw LostDevice(ErrorKind::unsupported,
                     fmt::format("{}: {} failed: {}", name(), doing, describe(status)));
}

void OpenClDevice::require_own_process() const {
  if (process_ != ::getpid())
    fail(ErrorKind::unsupported, "{}: {}", name(), forked_process(process_));
}

Memory OpenClDevice::allocate(size_t bytes) {
  require_own_process();
  const size_t room = padded(std::max<size_t>(bytes, 1), kAlignment);
  Status status = kSuccess;
  const Buffer buffer = api_.create_buffer(context_, /*read and write*/ 1, room, nullptr, &status);
  const uint32_t zero = 0;
  // Drivers allocate lazily, so force the allocation here to detect a lack of memory.
  if (status == kSuccess)
    status = api_.fill_buffer(queue_, buffer, &zero, sizeof zero, 0, room, 0, nullptr, nullptr);
  if (status == kSuccess) status = wait_for_all("clearing memory");
  if (status != kSuccess) {
    if (buffer) api_.release_buffer(buffer);
    fail(ErrorKind::memory,
         "{}: cannot allocate {}: {}; the device has {}, of which this process uses {}, and at "
         "most {} "
         "per buffer; use a smaller batch, more lanes, or memory_limit",
         name(), format_bytes(static_cast<double>(bytes)), describe(status),
         format_bytes(static_cast<double>(description_.memory)),
         format_bytes(static_cast<double>(allocated_)),
         format_bytes(static_cast<double>(description_.largest_allocation)));
  }
  return reserve_addresses(buffer, bytes, room);
}

Memory OpenClDevice::reserve_addresses(Buffer buffer, size_t bytes, size_t room) {
  void* const range = ::mmap(nullptr, padded(room, kPage), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    api_.release_buffer(buffer);
    fail(ErrorKind::memory, "{}: cannot reserve addresses for {}", name(),
         format_bytes(static_cast<double>(bytes)));
  }
  auto* const address = static_cast<std::byte*>(range);
  const MutexLock lock(memory_mutex_);
  allocations_[address] = {buffer, room};
  allocated_ += room;
  return {*this, {address, [this](std::byte* at) { release(at); }}, bytes};
}

void OpenClDevice::release(std::byte* address) {
  const MutexLock lock(memory_mutex_);
  const auto found = allocations_.find(address);
  api_.release_buffer(found->second.buffer);  // the driver waits for kernels that use it
  ::munmap(address, padded(found->second.bytes, kPage));
  allocated_ -= found->second.bytes;
  allocations_.erase(found);
}

OpenClDevice::Place OpenClDevice::locate(const void* address) const {
  if (!address) return {nullptr, 0};
  const auto* const at = static_cast<const std::byte*>(address);
  const MutexLock lock(memory_mutex_);
  auto found = allocations_.upper_bound(at);
  require(found != allocations_.begin(), ErrorKind::internal, "{}: an address of other memory",
          name());
  --found;
  const auto offset = static_cast<size_t>(at - found->first);
  require(offset <= found->second.bytes, ErrorKind::internal, "{}: an address of other memory",
          name());
  return {found->second.buffer, offset};
}

OpenClDevice::Stage& OpenClDevice::next_stage() {
  Stage& stage = stages_[next_stage_];
  next_stage_ = (next_stage_ + 1) % kStages;
  settle(stage);
  if (stage.memory) return stage;
  void* const memory =
      ::mmap(nullptr, kStageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, ErrorKind::memory, "{}: cannot allocate {} for copies", name(),
          format_bytes(static_cast<double>(kStageBytes)));
  stage.memory = static_cast<std::byte*>(memory);
  return stage;
}

void OpenClDevice::settle(Stage& stage) {
  if (!stage.event) return;
  constexpr std::string_view kToDevice = "a copy to the device";
  constexpr std::string_view kFromDevice = "a copy from the device";
  const std::string_view doing = stage.to ? kFromDevice : kToDevice;
  check_work(wait(kSuccess, std::exchange(stage.event, nullptr), doing), doing);
  if (stage.to) std::memcpy(stage.to, stage.memory, stage.bytes);
  stage.to = nullptr;
}

// Completes reads in the order of their launch.
void OpenClDevice::settle_reads() {
  for (size_t i = 0; i < kStages; ++i)
    if (Stage& stage = stages_[(next_stage_ + i) % kStages]; stage.to) settle(stage);
}

void OpenClDevice::abandon_stages() { stages_.fill({}); }

template <typename Copy>
void OpenClDevice::in_stages(const Copy& copy) {
  require_own_process();
  try {
    copy();
  } catch (...) {
    abandon_stages();
    throw;
  }
}

void OpenClDevice::write(std::byte* to, const std::byte* from, size_t bytes) {
  const MutexLock lock(stage_mutex_);
  in_stages([&] {
    const Place place = bytes > 0 ? locate(to) : Place{};
    for (size_t done = 0; done < bytes;) {
      Stage& stage = next_stage();
      const size_t part = std::min(bytes - done, kStageBytes);
      std::memcpy(stage.memory, from + done, part);
      check_work(api_.write_buffer(queue_, place.buffer, /*blocking=*/0, place.offset + done, part,
                                   stage.memory, 0, nullptr, &stage.event),
                 "a copy to the device");
      done += part;
    }
  });
  to_device_ += static_cast<int64_t>(bytes);
}

void OpenClDevice::enqueue_reads(const std::byte* from, std::byte* to, size_t bytes) {
  const Place place = bytes > 0 ? locate(from) : Place{};
  for (size_t done = 0; done < bytes;) {
    Stage& stage = next_stage();
    const size_t part = std::min(bytes - done, kStageBytes);
    check_work(api_.read_buffer(queue_, place.buffer, /*blocking=*/0, place.offset + done, part,
                                stage.memory, 0, nullptr, &stage.event),
               "a copy from the device");
    stage.to = to + done;
    stage.bytes = part;
    done += part;
  }
  from_device_ += static_cast<int64_t>(bytes);
}

void OpenClDevice::read(const std::byte* from, std::byte* to, size_t bytes) {
  const MutexLock lock(stage_mutex_);
  in_stages([&] {
    enqueue_reads(from, to, bytes);
    settle_reads();
  });
}

void OpenClDevice::read_later(const std::byte* from, std::byte* to, size_t bytes) {
  const MutexLock lock(stage_mutex_);
  in_stages([&] { enqueue_reads(from, to, bytes); });
}

void OpenClDevice::finish() {
  constexpr std::string_view kDoing = "running kernels";
  const MutexLock lock(stage_mutex_);
  in_stages([&] {
    check_work(wait_for_all(kDoing), kDoing);
    settle_reads();
  });
}

DeviceUse OpenClDevice::use() const {
  const MutexLock lock(busy_mutex_);
  const double now = busy_since_ ? seconds_between(*busy_since_, Clock::now()) : 0;
  return {.copied = {to_device_, from_device_},
          .memory = allocated_,
          .busy_seconds = busy_seconds_ + now};
}

Status OpenClDevice::wait_for_all(std::string_view doing) {
  const int64_t launched = launches_;
  Event event = nullptr;
  const Status enqueued = api_.mark(queue_, 0, nullptr, &event);
  const Status status = wait(enqueued, event, doing);
  const MutexLock lock(busy_mutex_);
  if (launched == launches_ && busy_since_)
    busy_seconds_ += seconds_between(*std::exchange(busy_since_, std::nullopt), Clock::now());
  return status;
}

// Polls, because OpenCL has no wait with a deadline. Spins at first, because most commands end
// soon. Then each pause is an eighth of the time so far.
Status OpenClDevice::wait(Status enqueued, Event event, std::string_view doing) {
  constexpr double kSpinning = 50e-6, kLeast = 5e-6, kMost = 2e-3;
  if (enqueued != kSuccess) return enqueued;
  Status status = api_.flush(queue_);
  const Clock::time_point begin = Clock::now();
  while (status == kSuccess) {
    Status state = 0;
    status = api_.get_event_info(event, EventInfo::status, sizeof state, &state, nullptr);
    if (status == kSuccess && state < 0) status = state;
    if (status != kSuccess || state == 0) break;
    const double seconds = seconds_between(begin, Clock::now());
    if (seconds > timeout_)
      throw LostDevice(
          ErrorKind::timeout,
          fmt::format(
              "{}: {} did not finish within {:g} s, so the device hangs or is lost; restart "
              "its driver, use the device \"cpu\", or raise cluster.device_timeout",
              name(), doing, timeout_.load()));
    if (seconds < kSpinning)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::clamp(seconds / 8, kLeast, kMost)));
  }
  api_.release_event(event);
  return status;
}

void OpenClDevice::run(BuiltKernel kernel, const Range& range,
                       std::span<const Argument> arguments) {
  if (range.global[0] == 0 || range.global[1] == 0 || range.global[2] == 0) return;
  require_own_process();
  constexpr int64_t kLaunchesPerFlush = 16;  // the device starts while further kernels are launched
  const MutexLock lock(launch_mutex_);
  uint32_t index = 0;
  const auto set = [&](const auto& value) {
    check_work(api_.set_argument(kernel, index++, sizeof value, &value), "setting an argument");
  };
  for (const Argument& argument : arguments) switch (argument.kind_) {
      case Argument::Kind::memory: {
        const Place place = locate(argument.memory_);
        set(place.buffer);
        set(static_cast<int64_t>(place.offset));
        break;
      }
      case Argument::Kind::integer:
        set(argument.integer_);
        break;
      case Argument::Kind::number:
        set(argument.number_);
        break;
      case Argument::Kind::key:
        set(argument.key_);
        break;
    }
  check_work(api_.run_kernel(queue_, kernel, 3, nullptr, range.global.data(), range.local.data(), 0,
                             nullptr, nullptr),
             "starting a kernel");
  if (++launches_ % kLaunchesPerFlush == 0) check_work(api_.flush(queue_), "starting kernels");
  const MutexLock busy(busy_mutex_);
  if (!busy_since_) busy_since_ = Clock::now();
}

BuiltKernel OpenClDevice::kernel(std::string_view source, const std::string& name,
                                 const std::string& options) {
  std::string text = fmt::format("{}{}", kCommonSource, source);
  const MutexLock lock(build_mutex_);
  BuiltProgram& program = programs_[fmt::format("{}\n{}", options, text)];
  if (!program) {
    program = build(text, options);
  }
  BuiltKernel& found = kernels_[fmt::format("{}\n{}\n{}", name, options, text)];
  if (!found) {
    Status status = kSuccess;
    found = api_.create_kernel(program, name.c_str(), &status);
    check(status, fmt::format("creating the kernel '{}'", name));
  }
  return found;
}

BuiltProgram OpenClDevice::build(const std::string& text, const std::string& options) {
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", facts(), description_.version, options, text);
  const std::string all_options = "-cl-std=CL1.2 " + options;
  if (const BuiltProgram kept = from_disk(key, all_options)) return kept;
  tell_progress();
  const char* pointer = text.c_str();
  const size_t length = text.size();
  Status status = kSuccess;
  const BuiltProgram program = api_.create_program(context_, 1, &pointer, &length, &status);
  check(status, "creating a program");
  status =
      api_.build_program(program, 1, &description_.device, all_options.c_str(), nullptr, nullptr);
  if (status != kSuccess) {
    const std::string messages = build_log(program);
    api_.release_program(program);
    fail(ErrorKind::unsupported, "{}: the driver cannot compile Artel's kernels: {}: {}", name(),
         describe(status), messages);
  }
  to_disk(key, program);
  return program;
}

// Logs the first program and then every few.
void OpenClDevice::tell_progress() {
  constexpr int kEvery = 10;
  if (compiled_ == 0)
    log(LogLevel::info,
        "{}: compiling kernels; this takes seconds to a minute, and the next start reads them from "
        "the disk",
        name());
  else if (compiled_ % kEvery == 0)
    log(LogLevel::info, "{}: {} programs compiled", name(), compiled_);
  ++compiled_;
}

std::string OpenClDevice::build_log(BuiltProgram program) const {
  constexpr size_t kMost = size_t{1} << 16;
  size_t bytes = 0;
  api_.get_build_info(program, description_.device, BuildInfo::log, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  if (bytes > 0)
    api_.get_build_info(program, description_.device, BuildInfo::log, bytes, text.data(), &bytes);
  return text.substr(0, std::min(text.find('\0'), kMost));
}

BuiltProgram OpenClDevice::from_disk(const std::string& key, const std::string& options) {
  const std::optional<std::string> binary = kept_binary(key);
  if (!binary) return nullptr;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(binary->data());
  const unsigned char* pointer = bytes;
  const size_t length = binary->size();
  Status of_binary = kSuccess, status = kSuccess;
  const BuiltProgram program = api_.create_program_with_binary(
      context_, 1, &description_.device, &length, &pointer, &of_binary, &status);
  if (status != kSuccess || of_binary != kSuccess) return nullptr;
  if (api_.build_program(program, 1, &description_.device, options.c_str(), nullptr, nullptr) ==
      kSuccess)
    return program;
  api_.release_program(program);
  return nullptr;
}

void OpenClDevice::to_disk(const std::string& key, BuiltProgram program) const {
  size_t bytes = 0;
  if (api_.get_program_info(program, ProgramInfo::binary_sizes, sizeof bytes, &bytes, nullptr) !=
          kSuccess ||
      bytes == 0)
    return;
  std::string binary(bytes, '\0');
  char* pointer = binary.data();
  if (api_.get_program_info(program, ProgramInfo::binaries, sizeof pointer, &pointer, nullptr) ==
      kSuccess)
    keep_binary(key, binary);
}

}  // namespace artel::opencl
