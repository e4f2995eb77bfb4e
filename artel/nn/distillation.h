// Knowledge distillation (Hinton et al., 2015). A student network learns the softened outputs of
// trained teacher networks together with the labels.
//
//   const artel::Model teacher = artel::nn::softened_outputs({large}, "cross_entropy", {});
//   const artel::Loss loss = artel::nn::distilled_loss("cross_entropy", hard, {});
//
// The loss adds the graph input kTeacherInput and reads the teachers' outputs from it.
#pragma once

#include <string>
#include <vector>

#include "artel/nn/loss.h"
#include "artel/nn/model.h"

namespace artel::nn {

struct DistillationOptions {
  double temperature = 4;  // divides scores before they become probabilities
  double weight = 0.9;     // weight of the teachers in the loss; the labels have 1 - weight
};

// Graph input for the teachers' outputs: f32 with the shape of the student's prediction.
inline constexpr const char* kTeacherInput = "teacher";
// Prefix of the parameters and states of teacher `number`.
std::string teacher_prefix(size_t number);

// Combines all teachers into one network that predicts the mean of their softened outputs. These
// are probabilities for the losses cross_entropy, kl, and binary_cross_entropy, and the unchanged
// outputs for all other losses. Throws if the teachers' outputs have different shapes.
Model softened_outputs(const std::vector<Model>& teachers, const std::string& loss,
                       const DistillationOptions& options);

// The loss (1 - weight) * hard + weight * soft, where `soft` depends on `loss`:
// - cross_entropy, kl: temperature^2 times the mean over rows of KL(teacher || student), both
//   softened. Rows with an ignored label are left out.
// - binary_cross_entropy: temperature^2 times that loss, with the teachers' probabilities as
// targets.
// - others: the loss itself, with the teachers' outputs as targets.
Loss distilled_loss(const std::string& loss, const Loss& hard, const DistillationOptions& options);

}  // namespace artel::nn
