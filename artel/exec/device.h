// Where kernels run and values lie.
//
// The processor is cpu(). Another kind of device is a subclass, and kernels that are registered for
// its kind (exec/kernel.h); a program that is compiled for it runs there what it has kernels for,
// and all else on the processor (exec/plan.h).
//
//   const artel::Memory memory = artel::cpu().allocate(1024);
//   memory.floats()[0] = 1;
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace artel {

class Memory;

// Must outlive all memory and all programs on it. Several threads may use it at the same time.
class Device {
 public:
  virtual ~Device() = default;

  // What kernels are registered for, such as "cpu".
  virtual std::string_view kind() const = 0;
  // Zeroed, at an address that is a multiple of 64. Offsets may be added to addresses, but only the
  // device's own kernels and the two functions below may use what is there: the processor need not
  // be able to read it.
  virtual Memory allocate(size_t bytes) = 0;
  // Copies from and to memory of the processor, after what the device's kernels have begun.
  virtual void write(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual void read(const std::byte* from, std::byte* to, size_t bytes) = 0;
};

Device& cpu();

// Memory of a device. Copies of a handle share it; it lives as long as one of them.
class Memory {
 public:
  Memory() = default;
  Memory(Device& device, std::shared_ptr<std::byte> address, size_t bytes)
      : device_(&device), address_(std::move(address)), bytes_(bytes) {}

  explicit operator bool() const { return device_ != nullptr; }
  Device& device() const { return *device_; }
  size_t bytes() const { return bytes_; }
  // For kernels of the device.
  std::byte* address() const { return address_.get(); }
  // For the processor: throws an internal error if the memory is not the processor's.
  std::span<std::byte> host() const;
  std::span<float> floats() const;
  // Throws an internal error if it is not within this memory.
  Memory part(size_t offset, size_t bytes) const;

 private:
  Device* device_ = nullptr;
  std::shared_ptr<std::byte> address_;
  size_t bytes_ = 0;
};

}  // namespace artel
