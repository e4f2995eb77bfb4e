// The constants of a node: stride, axis, probability. A small map from name to value.
//
//   const artel::Attributes attributes = {{"axis", int64_t{1}}, {"alpha", 0.5}};
//   const double alpha = attributes.number("alpha");
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace artel {

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> values)
      : values_(values) {}

  bool has(std::string_view name) const { return values_.contains(name); }
  // The value, or the fallback if it is missing. Without a fallback, throws an internal error.
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  int64_t integer(std::string_view name, int64_t fallback) const {
    return has(name) ? integer(name) : fallback;
  }
  bool flag(std::string_view name) const { return integer(name, 0) != 0; }
  double number(std::string_view name) const { return get<double>(name); }
  double number(std::string_view name, double fallback) const {
    return has(name) ? number(name) : fallback;
  }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  const std::vector<int64_t>& integers(std::string_view name) const {
    return get<std::vector<int64_t>>(name);
  }

  void set(std::string name, Attribute value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  const std::map<std::string, Attribute, std::less<>>& all() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  template <typename T>
  const T& get(std::string_view name) const;

  std::map<std::string, Attribute, std::less<>> values_;
};

// "axis 1, padding [1, 1]"; numbers with all their digits.
std::string to_string(const Attributes& attributes);

}  // namespace artel
