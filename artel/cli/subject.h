// The subject of a command: the network and samples of a configuration, or a model by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/run/config/config.h"
#include "artel/run/config/setup.h"

namespace artel::cli {

struct Subject {
  RunConfig config;
  data::SampleLayout layout;
  TensorType x, y;      // of one sample; x after augmentation
  int64_t samples = 0;  // for training; 0 without data

  Model model() const { return make_model(config.model, layout); }
};

Subject subject_of_config(const std::string& file, const std::vector<std::string>& overrides);

// Empty for an unknown model. `input` is the shape of one sample, such as "3x32x32"; empty means as
// published.
std::optional<Subject> subject_of_model(const std::string& name, const std::string& input,
                                        const std::vector<std::string>& overrides);

// Opens a model by name or a configuration file. Throws otherwise.
Subject subject_of(const std::string& name, const std::string& input,
                   const std::vector<std::string>& overrides);

// Throws the error of subject_of for an unknown name.
[[noreturn]] void fail_unknown_subject(const std::string& name);

}  // namespace artel::cli
