// Assigns TOML values to configuration keys. Internal to run/config.
#pragma once

#include <string>
#include <string_view>

#include "artel/base/keys.h"
#include "artel/base/toml_text.h"
#include "artel/run/config/config.h"

namespace artel {

// One assignment of a file or of the command line.
struct ConfigEntry {
  std::string key;
  const toml::node* node;
  std::string where;  // "run.toml:12" or "--set train.epochs=x"
  std::string text;   // as typed on the command line; empty for a file
};

// Throws an Error that begins with the place and the key of the entry.
[[noreturn]] void refuse(const ConfigEntry& entry, std::string_view what);

// A short form of the value for messages, on one line.
std::string shown(const toml::node& node);

// A visitor of keys that assigns one entry to the key it names.
class Assign final : public KeyVisitor {
 public:
  explicit Assign(const ConfigEntry& entry) : entry_(entry) {}

  bool found() const { return found_; }

  void operator()(const Key& key, std::string& value) override;
  void operator()(const Key& key, int64_t& value) override;
  void operator()(const Key& key, double& value) override;
  void operator()(const Key& key, bool& value) override;
  void operator()(const Key& key, std::vector<std::string>& value) override;
  void operator()(const Key& key, std::optional<int64_t>& value) override;
  void operator()(const Key& key, optim::Options& value);
  void operator()(const Key& key, ByteSize& value);
  void operator()(const Key& key, WorkerCount& value);
  void operator()(const Key& key, BatchSize& value);
  void operator()(const Key& key, ClassWeights& value);

 private:
  bool matches(const Key& key);
  int64_t whole_number(const Key& key, std::string_view expected) const;
  void check_range(const Key& key, double number) const;

  const ConfigEntry& entry_;
  bool found_ = false;
};

}  // namespace artel
