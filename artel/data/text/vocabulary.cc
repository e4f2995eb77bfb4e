#include "artel/data/text/vocabulary.h"

#include "artel/base/error.h"
#include "artel/base/json_values.h"

namespace artel::data {

std::vector<std::string> numbered_tokens(const nlohmann::json& vocabulary,
                                         const std::string& where) {
  require(vocabulary.is_object() && !vocabulary.empty(), ErrorKind::corrupt,
          "[{}] expected an object from tokens to numbers", where);
  std::vector<std::string> names(vocabulary.size());
  for (const auto& [name, number] : vocabulary.items()) {
    const int64_t i = number.is_number_integer() ? number.get<int64_t>() : -1;
    require(i >= 0 && i < static_cast<int64_t>(names.size()) && names[i].empty(),
            ErrorKind::corrupt, "[{}] token '{}': got number {}, expected each of 0 to {} once",
            where, name, number.dump(), names.size() - 1);
    names[i] = name;
  }
  return names;
}

}  // namespace artel::data
