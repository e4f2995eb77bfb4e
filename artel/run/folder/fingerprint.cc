#include "artel/run/folder/fingerprint.h"

#include "artel/base/random.h"
#include "artel/data/fetch.h"
#include "artel/data/files.h"
#include "artel/train/loop/facts.h"

namespace artel {

std::string fingerprint_of(const RunConfig& config, const RunData& data) {
  std::string text;
  for (const data::Dataset* const set : {data.train.get(), data.validation.get(), data.test.get()})
    if (set)
      for (const auto& [name, value] : facts_of("", set))
        text += fmt::format("{} = {}\n", name, value);
  std::string result = fmt::format("{:016x}", hash_name(text));
  for (const std::string& path : {config.data.path, config.data.test_path})
    if (!path.empty() && data::is_there(path))
      result += fmt::format("-{:016x}", data::hash_files(path));
  return result;
}

std::shared_ptr<data::FileDigests> file_digests(const RunConfig& config) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& path : {config.data.path, config.data.test_path, config.data.tokenizer})
    if (!path.empty() && data::is_there(path)) paths.emplace_back(path);
  if (config.data.path.empty())
    for (const data::CatalogueEntry& entry : data::catalogue())
      if (entry.name == config.data.set)
        if (const auto folder = data::find_set(entry)) paths.push_back(*folder);
  return std::make_shared<data::FileDigests>(
      paths, data::FileDigestOptions{.cache = data::data_folder() / "digests"});
}

bool same_data(const std::string& before, const std::string& now) {
  return before == now || before.empty() ||
         (before.find('-') == before.npos && now.starts_with(before));
}

}  // namespace artel
