#include "artel/run/samples/text_model.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/checkpoint/gguf_weights.h"
#include "artel/data/fetch.h"
#include "artel/data/text/byte_pair.h"
#include "artel/nn/adapters.h"
#include "artel/nn/zoo/names.h"
#include "artel/run/config/fetch.h"
#include "artel/run/config/published_config.h"
#include "artel/run/folder/run_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

void check_vocabulary(const TextModel& model, const fs::path& source) {
  require(model.tokenizer->size() <= model.classes, ErrorKind::invalid_argument,
          "[{}] the tokenizer has {} tokens, but the network has a vocabulary of {}",
          source.string(), model.tokenizer->size(), model.classes);
}

TextModel open_published(const fs::path& folder) {
  TextModel model;
  const fs::path file = folder / kPublishedConfig;
  model.config = parse_published_config(read_file(file), file.string());
  if (!nn::token_head(model.config.name)) model.config.untied_head = false;
  model.classes = model.config.vocabulary;
  model.tokenizer = data::open_tokenizer(folder);
  check_vocabulary(model, folder);
  model.weights = weights_for(model.config, folder);
  return model;
}

TextModel open_gguf(const fs::path& path) {
  const Gguf file = parse_gguf(map_file(path));
  TextModel model;
  model.config = gguf_config(file);
  model.classes = model.config.vocabulary;
  model.tokenizer = data::read_byte_pair(file);
  check_vocabulary(model, path);
  model.weights = nn::rename_published(
      model.config.name, checkpoint::gguf_weights(file, checkpoint::GgufForm::quantised));
  const std::string end = "tokenizer.ggml.eos_token_id";
  if (file.has(end)) model.end = static_cast<int32_t>(file.integer(end));
  return model;
}

TextModel open_trained(const RunFolder& folder, const fs::path& source, Weights which) {
  const data::SampleLayout layout = folder.load_layout();
  require(layout.tokenizer != nullptr, ErrorKind::invalid_argument,
          "[{}] has no tokenizer, expected a run on text", folder.path().string());
  TextModel model;
  const RunConfig run = read_config(folder.config());
  model.config = run.model;
  model.window = run.data.context;
  if (model.config.weights.empty()) model.context = model.window;
  if (model.config.vocabulary == 0) model.config.vocabulary = layout.tokenizer->size();
  require(nn::classifies_texts(model.config.name) || layout.tokenizer->size() == layout.classes,
          ErrorKind::corrupt,
          "[{}] the tokenizer has {} tokens, but the network was trained with {}",
          folder.tokenizer().string(), layout.tokenizer->size(), layout.classes);
  model.classes = layout.classes;
  model.tokenizer = layout.tokenizer;
  model.separator = sample_separator(run.data, *layout.tokenizer);
  model.weights = weights_for(model.config, source, which);
  if (!model.config.adapters.empty()) {
    model.weights = nn::merge_adapters(model.weights, nn::parse_adapters(model.config.adapters),
                                       model.config.name.starts_with("gpt2"));
    model.config.adapters.clear();
  }
  return model;
}

// True if the catalogue has a model of this name.
bool is_published_model(const std::string& name) {
  return std::any_of(
      data::catalogue().begin(), data::catalogue().end(), [&](const data::CatalogueEntry& entry) {
        const std::vector<std::string>& files = entry.complete.front();
        return entry.name == name && std::count(files.begin(), files.end(), kPublishedConfig) > 0;
      });
}

}  // namespace

std::optional<int32_t> sample_separator(const DataConfig& data, const data::Tokenizer& tokenizer) {
  if (!data.lines) return {};
  return tokenizer.encode("\n").front();  // data/text/text_lines.h makes sure that it is one token
}

TextModel open_text_model(const TextSource& text_source) {
  const std::string& source = text_source.path;
  const fs::path path =
      !fs::exists(source) && is_published_model(source) ? fetch_set(source) : fs::path(source);
  require(fs::exists(path), ErrorKind::not_found,
          "[{}] no such file or folder, expected a run or a published model", source);
  if (is_gguf_file(path)) return open_gguf(path);
  if (fs::exists(path / kPublishedConfig)) return open_published(path);
  const std::optional<RunFolder> run = find_run(path);
  require(run.has_value(), ErrorKind::not_found,
          "[{}] is neither a run nor a GGUF file nor a folder with {}, weights and a tokenizer",
          source, kPublishedConfig);
  return open_trained(*run, path, text_source.weights);
}

void warn_of_untrained_positions(const TextModel& model, const std::string& source,
                                 int64_t tokens) {
  if (model.context == 0 || tokens <= model.context) return;
  log(LogLevel::warning,
      "[{}] the text takes {} positions, but training had data.context = {}: the others still have "
      "their random initial values; try a shorter text, or train with model.positions = {}",
      source, tokens, model.context, model.context);
}

}  // namespace artel
