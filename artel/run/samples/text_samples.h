// Texts generated during training: a short text after an epoch, appended to texts.jsonl.
//
// Generation has its own random stream, so it does not change the bits of the training. The stream
// is the same for each text: `artel generate` with the same prompt and number of tokens reproduces
// the last one. Only worker 0 generates texts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/text/tokenizer.h"
#include "artel/nn/model.h"
#include "artel/run/config/config.h"

namespace artel {

class Parameters;

class TextSamples {
 public:
  // Takes the prompt from `set` if the configuration has none. Throws for a prompt with unknown
  // tokens, or longer than a sample.
  TextSamples(const RunConfig& config, const data::Dataset& set);

  // True if the data is text and the configuration requests tokens.
  bool wanted() const { return tokens_ > 0; }

  // Drops the texts of later steps, which will be written again.
  void begin(const std::filesystem::path& file, int64_t step) const;

  struct Text {
    std::string prompt, text;
  };
  // Generates a text. Empty for a network that does not predict next tokens, after which `wanted`
  // is false. Logs other failures once.
  std::optional<Text> write(const Model& model, Parameters& weights, int threads);

  // Appends {"step": 7, "epoch": 1, "prompt": "...", "text": "..."}.
  void append(const std::filesystem::path& file, int64_t step, int64_t epoch,
              const Text& text) const;

 private:
  Text generate(const Model& model, Parameters& weights, int threads) const;

  int64_t tokens_ = 0;
  int64_t window_ = 0;          // tokens per sample
  bool all_positions_ = false;  // all positions are trained, not only those of the window
  data::TokenizerPtr tokenizer_;
  std::optional<int32_t> separator_;
  std::vector<int32_t> prompt_;
};

}  // namespace artel
