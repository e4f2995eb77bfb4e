// The parameters of one server, and their update by contributions.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artel/comm/transports/transport.h"
#include "artel/ps/rules/rule.h"

namespace artel::ps {

class Shard {
 public:
  using Allocate = std::function<comm::SharedBytes(size_t bytes)>;

  // Values are initially zero. Throws if segments are not ascending, or if the rule needs whole
  // segments and the range cuts one.
  Shard(const Setup& setup, std::unique_ptr<UpdateRule> rule, const Allocate& allocate);

  const KeyRange& keys() const { return keys_; }
  // The keys must be inside the range. The memory never moves.
  std::span<float> values(const KeyRange& keys);
  std::span<float> state(int index, const KeyRange& keys);
  int states() const { return static_cast<int>(states_.size()); }

  // Applies a sum over `own` of the `lanes` lanes to some keys.
  void apply(const KeyRange& keys, std::span<const float> sum, const Step& step, int lanes,
             int own);
  // Maximum number of keys per call of `apply`.
  uint64_t most_keys_at_once() const;

  // Calls visit(segment, values) for all segments of this shard.
  void for_each(const std::function<void(const Segment&, std::span<const float>)>& visit);
  // "dense1/weight", for messages.
  std::string name_of(uint64_t key) const;

 private:
  std::span<float> part(const comm::SharedBytes& memory, const KeyRange& keys) const;
  size_t first_segment(uint64_t key) const;

  KeyRange keys_;
  std::vector<Segment> segments_;
  std::unique_ptr<UpdateRule> rule_;
  comm::SharedBytes values_;
  std::vector<comm::SharedBytes> states_;
};

}  // namespace artel::ps
