// From a configuration to the things that it describes.
#pragma once

#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/config.h"
#include "artel/train/trainer.h"

namespace artel {

struct RunData {
  data::Split split;  // `test` is the held-out part if the configuration asks for one
  data::Augmentation augment;

  const data::SampleLayout& layout() const { return split.train->layout(); }
};

// Opens the data of a run; a set of the catalogue is fetched first if it is not on this machine.
RunData open_data(const RunConfig& config);

// What the network sees of one sample, after augmentation.
TensorType sample_type(const data::SampleLayout& layout, const data::Augmentation& augment);

// The name of a class, or its number if it has none.
std::string class_name(const data::SampleLayout& layout, int64_t index);

// What a configuration says of a model of the zoo. `classes` of the data; 0: as published.
nn::ModelOptions model_options(const ModelConfig& config, int64_t classes);
// `classes` as above, for models of the zoo.
Model make_model(const ModelConfig& config, int64_t classes);
// The same for samples of a layout; the vocabulary is that of their tokenizer.
Model make_model(ModelConfig config, const data::SampleLayout& layout);

TrainerOptions trainer_options(const RunConfig& config);

// Parameter servers of the run; 0 for strategies without them. Throws if they are asked for with
// another strategy.
int server_count(const RunConfig& config);
// Whether the run goes on when a worker other than the first dies.
bool outlives_workers(const RunConfig& config);

// In the folder of a published model, as Hugging Face has them.
inline constexpr const char* kPublishedConfig = "config.json";

// The weights of a run, a checkpoint, a published model's folder or a file of any known format.
NamedTensors weights_at(const std::filesystem::path& path);
// The same under the names of a network, which published files may vary. Throws for a head of its
// own where the network has none.
NamedTensors weights_for(const ModelConfig& config, const std::filesystem::path& path);
// Loads the weights that the configuration names, if any, but those of its new layers; a line says
// what is left over. Throws for weights that do not fit, for a published model that computes
// something else than ours, and for new layers that do not exist.
void load_configured_weights(Trainer& trainer, const ModelConfig& config);

}  // namespace artel
