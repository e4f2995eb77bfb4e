#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "artel/base/text.h"
#include "artel/run/config.h"
#include "artel/run/config_keys.h"

namespace artel {
namespace {

std::string toml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

// Options hold numbers, flags and lists as the text that TOML has for them too.
bool is_bare(const std::string& option) {
  return option == "true" || option == "false" ||
         (!option.empty() && (std::isdigit(static_cast<unsigned char>(option.front())) ||
                              option.front() == '-' || option.front() == '['));
}

std::string to_toml_value(const std::string& value) { return toml_text(value); }
std::string to_toml_value(int64_t value) { return fmt::format("{}", value); }
std::string to_toml_value(bool value) { return value ? "true" : "false"; }
std::string to_toml_value(ByteSize value) { return fmt::format("{}", value.bytes); }
std::string to_toml_value(double value) { return fmt::format("{}", value); }
std::string to_toml_value(const std::optional<int64_t>& value) {
  return value ? fmt::format("{}", *value) : "\"none\"";
}
std::string to_toml_value(const std::vector<std::string>& value) {
  std::vector<std::string> items;
  for (const std::string& item : value) items.push_back(toml_text(item));
  return fmt::format("[{}]", join(items, ", "));
}
std::string to_toml_value(const optim::Options& value) {
  std::vector<std::string> items;
  for (const auto& [option, text] : value)
    items.push_back(fmt::format("{} = {}", option, is_bare(text) ? text : toml_text(text)));
  std::stable_partition(items.begin(), items.end(),
                        [](const std::string& item) { return item.starts_with("name "); });
  return fmt::format("{{ {} }}", join(items, ", "));
}

std::string type_name(const std::string&) { return "text"; }
std::string type_name(int64_t) { return "whole number"; }
std::string type_name(double) { return "number"; }
std::string type_name(bool) { return "true or false"; }
std::string type_name(ByteSize) { return "size"; }
std::string type_name(const std::optional<int64_t>&) { return "whole number or text"; }
std::string type_name(const std::vector<std::string>&) { return "list of texts"; }
std::string type_name(const optim::Options&) { return "text or table"; }

// A visitor of the key table that describes each key, with its present value as the default.
struct Describe {
  std::vector<KeyDescription>& keys;

  void operator()(const Key& key, const auto& value) {
    keys.push_back(
        {std::string(key.name), type_name(value), to_toml_value(value), std::string(key.help)});
  }
};

std::vector<KeyDescription> describe(const RunConfig& config) {
  std::vector<KeyDescription> keys;
  visit_keys(config, Describe{keys});
  return keys;
}

// Calls begin(section) where a new section starts, and each(key without it, description).
void by_section(const std::vector<KeyDescription>& keys, auto&& begin, auto&& each) {
  std::string section;
  for (const KeyDescription& key : keys) {
    const size_t dot = key.name.find('.');
    if (key.name.substr(0, dot) != section) begin(section = key.name.substr(0, dot));
    each(key.name.substr(dot + 1), key);
  }
}

}  // namespace

std::vector<KeyDescription> config_keys() { return describe(RunConfig{}); }

std::string to_toml(const RunConfig& config) {
  std::string text;
  by_section(
      describe(config),
      [&](const std::string& section) {
        text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
      },
      [&](const std::string& name, const KeyDescription& key) {
        text += fmt::format("{} = {}\n", name, key.default_value);
      });
  return text;
}

std::string config_markdown() {
  std::string text =
      "# Configuration\n\n"
      "A run is described by a TOML file. Every key has a default; on the command line `--set "
      "KEY=VALUE` overrides any\nof them (`--set train.epochs=10 --set train.optimizer.lr=0.05`). "
      "A key that does not exist is an error. The run's folder\nkeeps the complete configuration "
      "in `config.toml`.\n\n"
      "This page is made by `artel config --markdown`; a test compares the two.\n";
  by_section(
      config_keys(),
      [&](const std::string& section) {
        text += fmt::format("\n## [{}]\n\n| key | type | default | meaning |\n|---|---|---|---|\n",
                            section);
      },
      [&](const std::string&, const KeyDescription& key) {
        text += fmt::format("| `{}` | {} | `{}` | {} |\n", key.name, key.type, key.default_value,
                            key.help);
      });
  return text;
}

}  // namespace artel
