// nlohmann/json with range checks: reading a number that does not fit into the requested integer
// type throws. Include this header instead of the library.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace nlohmann {

template <typename T>
struct adl_serializer<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  template <typename Value>
  static void to_json(Value& json, T number) {
    ::nlohmann::to_json(json, number);
  }

  template <typename Value>
  static void from_json(const Value& json, T& number) {
    if (!fits(json))
      throw Value::out_of_range::create(
          406,
          fmt::format("expected a whole number of {} bits, got {}", 8 * sizeof(T), json.dump()),
          &json);
    ::nlohmann::from_json(json, number);
  }

 private:
  // The library itself reports values that are not numbers.
  template <typename Value>
  static bool fits(const Value& json) {
    if (json.is_number_unsigned())
      return std::in_range<T>(json.template get_ref<const typename Value::number_unsigned_t&>());
    if (json.is_number_integer())
      return std::in_range<T>(json.template get_ref<const typename Value::number_integer_t&>());
    if (!json.is_number_float()) return true;
    const double number = json.template get_ref<const typename Value::number_float_t&>();
    const double above = std::ldexp(1.0, 8 * sizeof(T) - (std::is_signed_v<T> ? 1 : 0));
    return number == std::floor(number) && number < above &&
           number >= (std::is_signed_v<T> ? -above : 0.0);
  }
};

}  // namespace nlohmann
