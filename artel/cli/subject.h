// What a command is about: the network and the samples of a configuration, or a model by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/run/config.h"
#include "artel/run/setup.h"

namespace artel::cli {

struct Subject {
  RunConfig config;
  data::SampleLayout layout;
  TensorType x, y;  // of one sample; x after augmentation

  Model model() const { return make_model(config.model, layout); }
};

Subject subject_of_config(const std::string& file, const std::vector<std::string>& overrides);

// Nothing if there is no model of that name. `input` is the shape of one sample, such as "3x32x32";
// empty: as published.
std::optional<Subject> subject_of_model(const std::string& name, const std::string& input,
                                        const std::vector<std::string>& overrides);

// Either; throws for what is neither a model nor a file.
Subject subject_of(const std::string& name, const std::string& input,
                   const std::vector<std::string>& overrides);

// What subject_of says of such a name.
[[noreturn]] void fail_unknown_subject(const std::string& name);

}  // namespace artel::cli
