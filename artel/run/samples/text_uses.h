// Uses of networks that read text: generation, and vectors of texts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/predict/generate.h"
#include "artel/run/samples/text_model.h"

namespace artel {

struct WrittenText {
  int64_t tokens = 0;       // generated tokens
  double seconds = 0;       // from the first to the last one
  size_t weight_bytes = 0;  // read per token
  size_t cache_bytes = 0;   // memory for the keys and values of the text
};

struct TextRequest {
  TextSource source;
  std::string prompt;
  GenerateOptions options = {};
  // Maximum length of the text that the network sees, for networks with rotary positions. 0: as
  // many positions as the prompt and the new tokens need.
  int64_t context = 0;
  int threads = 0;  // 0: all cores
  std::string device = "cpu";
  bool chat = false;  // the prompt is a question to a chat model; only the answer is returned
};

// Continues a prompt with a text model. `on_text` receives the prompt and then the text that each
// token adds. It returns false to stop.
WrittenText write_text(const TextRequest& request,
                       const std::function<bool(std::string_view)>& on_text);

// A row for each text: the mean of the last hidden states over its tokens, scaled to length 1.
// Throws unless the network is one of the BERT family.
Tensor text_vectors(const TextSource& source, const std::vector<std::string>& texts);

}  // namespace artel
