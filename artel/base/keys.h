// Configuration keys: names, allowed values, and help texts.
//
//   struct GossipOptions {
//     int64_t neighbours = 2;
//     void visit(artel::KeyVisitor& field) {
//       field({.name = "cluster.neighbours", .help = "Workers that each talks to.", .least = 1},
//             neighbours);
//     }
//   };
//
// A struct of options lists each option once, by calling field(Key, member). Reading, writing,
// help, and documentation are derived from that list.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artel {

struct Key {
  std::string_view name;  // including the section: "cluster.delay"
  std::string_view help;
  // Allowed range of a number.
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  // Allowed values of a text. Empty allows any.
  std::vector<std::string_view> choices = {};
  // Strategies of a group for which the key has an effect. Empty means all.
  std::vector<std::string_view> with = {};
};

// Called with each key of a list. The overloads are the supported types.
class KeyVisitor {
 public:
  virtual ~KeyVisitor() = default;
  virtual void operator()(const Key& key, std::string& value) = 0;
  virtual void operator()(const Key& key, int64_t& value) = 0;
  virtual void operator()(const Key& key, double& value) = 0;
  virtual void operator()(const Key& key, bool& value) = 0;
  virtual void operator()(const Key& key, std::vector<std::string>& value) = 0;
  virtual void operator()(const Key& key, std::optional<int64_t>& value) = 0;  // empty is "none"
};

struct KeyDescription {
  std::string name;           // "train.batch_size"
  std::string type;           // "whole number"
  std::string default_value;  // as TOML
  std::string help;
};

// Describes each key once, with its present value as the default. Given the name of a strategy,
// omits keys that have no effect with it.
class DescribeKeys : public KeyVisitor {
 public:
  explicit DescribeKeys(std::string_view strategy = {}) : strategy_(strategy) {}

  void operator()(const Key& key, std::string& value) override;
  void operator()(const Key& key, int64_t& value) override;
  void operator()(const Key& key, double& value) override;
  void operator()(const Key& key, bool& value) override;
  void operator()(const Key& key, std::vector<std::string>& value) override;
  void operator()(const Key& key, std::optional<int64_t>& value) override;

  std::vector<KeyDescription> keys;

 protected:
  void add(const Key& key, std::string_view type, std::string value);

 private:
  std::string_view strategy_;
};

// Values in TOML syntax.
std::string toml_value(const std::string& value);
std::string toml_value(int64_t value);
std::string toml_value(double value);
std::string toml_value(bool value);
std::string toml_value(const std::vector<std::string>& value);
std::string toml_value(const std::optional<int64_t>& value);

}  // namespace artel
