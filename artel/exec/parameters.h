// The parameters and states of a model in memory, in the layouts that kernels want.
//
//   const artel::Tensor weight = trainer.parameters().get("0.weight");
//   for (const artel::ParameterEntry& entry : trainer.parameters().entries())
//     artel::println("{} {}", entry.name, to_string(entry.shape));
//
// One contiguous block of the processor's memory, each entry on a cache line. A device has a copy
// of the block, which is renewed before a program runs there if values may have changed. Users and
// files see plain row-major tensors through get and set; optimizers work in place on `values`.
// Entries are f32 unless a network is only used and its weights have fewer bits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/exec/device.h"
#include "artel/exec/plan/layout.h"
#include "artel/graph/graph.h"

namespace artel {

struct ParameterEntry {
  std::string name;
  Shape shape;
  Layout layout;
  bool is_state = false;  // else a parameter, which may be trained
  size_t offset = 0;      // in bytes
  DType type = DType::f32;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(type); }
};

// Offset in elements of a value within its whole parameter; 0 unless it is a shard.
size_t shard_offset(const ValueData& value);

class Parameters {
 public:
  Parameters();
  explicit Parameters(std::vector<ParameterEntry> entries);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  bool contains(std::string_view name) const;
  // Throws for an unknown name, with the nearest known one.
  const ParameterEntry& entry(std::string_view name) const;

  // The values of an f32 entry.
  std::span<float> values(const ParameterEntry& entry);
  // All entries, with the padding between them; all are f32.
  std::span<float> block();
  std::span<const float> values(const ParameterEntry& entry) const;
  Memory memory(const ParameterEntry& entry) const;

  // The copy of an entry on a device. Updated by `refresh`.
  Memory memory_on(Device& device, const ParameterEntry& entry) const;
  // Copies all values to the device, unless none has changed since the last call. Thread safe.
  void refresh(Device& device) const;
  // Says that values may have changed. Needed only where they are written through spans that were
  // taken earlier.
  void touch();

  Tensor get(std::string_view name) const;
  // The values piece by piece. They must not change until all have been read.
  TensorSource source(const ParameterEntry& entry) const;
  std::vector<TensorSource> sources() const;
  // Throws if the shape differs; other floating types are converted to f32.
  void set(std::string_view name, const Tensor& value);

 private:
  struct Copies;  // on devices

  std::vector<ParameterEntry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // of the entries
  Memory memory_;
  std::shared_ptr<Copies> copies_;
};

}  // namespace artel
