// The parameters and states of a model in memory, in the layouts that kernels want.
//
//   const artel::Tensor weight = trainer.parameters().get("0.weight");
//   for (const artel::ParameterEntry& entry : trainer.parameters().entries())
//     artel::println("{} {}", entry.name, to_string(entry.shape));
//
// One contiguous block of the processor's memory, each entry on a cache line. Users and files see
// plain row-major tensors through get and set; optimizers work in place on `values`.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/exec/device.h"
#include "artel/exec/layout.h"
#include "artel/graph/graph.h"

namespace artel {

struct ParameterEntry {
  std::string name;
  Shape shape;
  Layout layout;
  bool is_state = false;  // else a parameter, which may be trained
  size_t offset = 0;      // in floats
};

// The element of the whole at which a value, perhaps a shard, lies in memory.
size_t shard_offset(const ValueData& value);

class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::vector<ParameterEntry> entries);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  bool contains(std::string_view name) const;
  // Throws for an unknown name, with the nearest known one.
  const ParameterEntry& entry(std::string_view name) const;

  std::span<float> values(const ParameterEntry& entry);
  // All entries, with the padding between them.
  std::span<float> block() { return memory_.floats(); }
  std::span<const float> values(const ParameterEntry& entry) const;
  Memory memory(const ParameterEntry& entry) const;

  Tensor get(std::string_view name) const;
  // The same piece by piece; until all are given, the values must stay as they are.
  TensorSource source(const ParameterEntry& entry) const;
  std::vector<TensorSource> sources() const;
  // Throws if the shape differs; other floating types are converted.
  void set(std::string_view name, const Tensor& value);

 private:
  std::vector<ParameterEntry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // of the entries
  Memory memory_;
};

}  // namespace artel
