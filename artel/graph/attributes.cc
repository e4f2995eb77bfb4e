#include "artel/graph/attributes.h"

#include <fmt/ranges.h>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {

template <typename T>
const T& Attributes::get(std::string_view name) const {
  const auto found = values_.find(name);
  require(found != values_.end(), ErrorKind::internal, "attribute '{}' is missing", name);
  const T* value = std::get_if<T>(&found->second);
  require(value != nullptr, ErrorKind::internal, "attribute '{}' has another type", name);
  return *value;
}

template const int64_t& Attributes::get(std::string_view) const;
template const double& Attributes::get(std::string_view) const;
template const std::string& Attributes::get(std::string_view) const;
template const std::vector<int64_t>& Attributes::get(std::string_view) const;

std::string to_string(const Attributes& attributes) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : attributes.all())
    parts.push_back(name + " " +
                    std::visit([](const auto& v) { return fmt::format("{}", v); }, value));
  return join(parts, ", ");
}

}  // namespace artel
