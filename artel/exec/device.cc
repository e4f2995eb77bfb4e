#include "artel/exec/device.h"

#include <cstring>

#include "artel/base/error.h"
#include "artel/tensor/tensor.h"

namespace artel {
namespace {

class Processor : public Device {
 public:
  std::string_view kind() const override { return "cpu"; }
  Memory allocate(size_t bytes) override { return {*this, artel::allocate(bytes), bytes}; }
  void write(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void read(const std::byte* from, std::byte* to, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

Device& cpu() {
  static Processor processor;
  return processor;
}

std::span<std::byte> Memory::host() const {
  require(!device_ || device_ == &cpu(), ErrorKind::internal,
          "[memory] the processor cannot read memory of a device of kind '{}'; copy it first",
          device_ ? device_->kind() : "");
  return {address_.get(), bytes_};
}

std::span<float> Memory::floats() const {
  return {reinterpret_cast<float*>(host().data()), bytes_ / sizeof(float)};
}

Memory Memory::part(size_t offset, size_t bytes) const {
  require(offset <= bytes_ && bytes <= bytes_ - offset, ErrorKind::internal,
          "[memory] a part: got {} bytes at {}, expected to be within {}", bytes, offset, bytes_);
  Memory part = *this;
  part.address_ = {address_, address_.get() + offset};
  part.bytes_ = bytes;
  return part;
}

}  // namespace artel
