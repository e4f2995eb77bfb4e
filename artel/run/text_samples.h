// What a language model writes while it learns: a short text after an epoch, kept in texts.jsonl.
//
// It has random numbers of its own, so that training gives the same bits with and without it, and
// the same for each text: `artel generate` with the same prompt and tokens writes what the last
// line says. Only worker 0 does it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/text/tokenizer.h"
#include "artel/nn/model.h"
#include "artel/run/config.h"

namespace artel {

class Parameters;

class TextSamples {
 public:
  // `set` is what the prompt is taken from if the configuration has none. Throws for a prompt that
  // the tokenizer does not know, or that is longer than a sample.
  TextSamples(const RunConfig& config, const data::Dataset& set);

  // Whether there is anything to write: the data is text, and tokens are asked for.
  bool wanted() const { return tokens_ > 0; }

  // What was written after later steps than this one is dropped: it will be written again.
  void begin(const std::filesystem::path& file, int64_t step) const;

  struct Text {
    std::string prompt, text;
  };
  // Nothing for a network that does not predict next tokens; then nothing is wanted any more. If it
  // cannot write for another reason, the log says so once.
  std::optional<Text> write(const Model& model, Parameters& weights, int threads);

  // Appends {"step": 7, "epoch": 1, "prompt": "...", "text": "..."}.
  void append(const std::filesystem::path& file, int64_t step, int64_t epoch,
              const Text& text) const;

 private:
  Text generate(const Model& model, Parameters& weights, int threads) const;

  int64_t tokens_ = 0;
  int64_t window_ = 0;          // tokens of a sample
  bool all_positions_ = false;  // are trained, not only those of the window
  data::TokenizerPtr tokenizer_;
  std::optional<int32_t> separator_;
  std::vector<int32_t> prompt_;
};

}  // namespace artel
