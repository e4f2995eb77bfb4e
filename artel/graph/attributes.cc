#include "artel/graph/attributes.h"

#include "artel/base/error.h"

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

}  // namespace artel
