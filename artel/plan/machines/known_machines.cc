#include "artel/plan/machines/known_machines.h"

#include "artel/plan/machines/machine_file.h"

namespace artel::plan {

std::optional<std::string_view> known_machine_file(std::string_view name) {
  for (const KnownMachineFile& file : known_machine_files())
    if (file.name == name) return file.text;
  return std::nullopt;
}

std::vector<std::string> known_machines() {
  std::vector<std::string> names;
  for (const KnownMachineFile& file : known_machine_files()) names.emplace_back(file.name);
  return names;
}

}  // namespace artel::plan
