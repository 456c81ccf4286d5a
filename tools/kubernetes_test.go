// Package tools has the programs that check this repository, and checks of what only their modules
// can read.
package tools

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// example is deploy/kubernetes/shop.yaml, decoded.
type example struct {
	config     corev1.ConfigMap
	migrate    batchv1.Job
	deployment appsv1.Deployment
	service    corev1.Service
	staff      corev1.Service
	budget     policyv1.PodDisruptionBudget
	network    networkingv1.NetworkPolicy
}

// read decodes each object into its type of the API. A field that the type does not have, or that is
// there twice, fails the test.
func read(t *testing.T) *example {
	t.Helper()
	raw, err := os.ReadFile("../deploy/kubernetes/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &example{}
	missing := map[string]any{
		"v1 ConfigMap shop": &e.config, "batch/v1 Job shop-migrate": &e.migrate, "apps/v1 Deployment shop": &e.deployment,
		"v1 Service shop": &e.service, "v1 Service shop-staff": &e.staff,
		"policy/v1 PodDisruptionBudget shop": &e.budget, "networking.k8s.io/v1 NetworkPolicy shop": &e.network,
	}
	for documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var is metav1.PartialObjectMetadata
		if err := errors.Join(err, yaml.Unmarshal(document, &is)); err != nil {
			t.Fatal(err)
		}
		kind := is.APIVersion + " " + is.Kind + " " + is.Name
		into, ok := missing[kind]
		if !ok {
			t.Fatalf("%s: not expected, or there twice", kind)
		}
		delete(missing, kind)
		// As the API's server does: sigs.k8s.io/yaml alone would let a name in other capitals pass.
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		strict, err := json.UnmarshalStrict(asJSON, into)
		if err := errors.Join(append(strict, err)...); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for kind := range missing {
		t.Errorf("%s is missing", kind)
	}
	return e
}

func TestTheObjectsFitTogether(t *testing.T) {
	e := read(t)
	pod := e.deployment.Spec.Template
	podLabels := labels.Set(pod.Labels)
	for what, selector := range map[string]*metav1.LabelSelector{
		"Deployment": e.deployment.Spec.Selector, "PodDisruptionBudget": e.budget.Spec.Selector, "NetworkPolicy": &e.network.Spec.PodSelector,
		"Service": {MatchLabels: e.service.Spec.Selector}, "staff's Service": {MatchLabels: e.staff.Spec.Selector}, "spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector,
	} {
		chosen, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || chosen.Empty() || !chosen.Matches(podLabels) {
			t.Errorf("the %s selects %v, the shops have the labels %v", what, chosen, podLabels)
		}
		if chosen.Matches(labels.Set(e.migrate.Spec.Template.Labels)) {
			t.Errorf("the %s selects the job that migrates", what)
		}
	}
	ports := map[string]bool{}
	shop := pod.Spec.Containers[0]
	for _, port := range shop.Ports {
		ports[port.Name] = true
	}
	for _, name := range []string{
		e.service.Spec.Ports[0].TargetPort.StrVal, e.staff.Spec.Ports[0].TargetPort.StrVal, shop.ReadinessProbe.HTTPGet.Port.StrVal, shop.LivenessProbe.HTTPGet.Port.StrVal,
		e.network.Spec.Ingress[0].Ports[0].Port.StrVal, e.network.Spec.Ingress[1].Ports[0].Port.StrVal, e.network.Spec.Ingress[2].Ports[0].Port.StrVal,
	} {
		if !ports[name] {
			t.Errorf("the shop has no port %q", name)
		}
	}
	if shop.EnvFrom[0].ConfigMapRef.Name != e.config.Name {
		t.Errorf("the settings come from %q, which there is not", shop.EnvFrom[0].ConfigMapRef.Name)
	}
	if least := e.budget.Spec.MaxUnavailable; least == nil || least.IntValue() >= int(*e.deployment.Spec.Replicas) {
		t.Errorf("the budget lets %v of %d shops go", least, *e.deployment.Spec.Replicas)
	}
}

// TestAShopIsNotKilledWhileItDrains holds the grace period against the drain, and the drain's delay
// against the time that readiness needs.
func TestAShopIsNotKilledWhileItDrains(t *testing.T) {
	e := read(t)
	setting := func(name string) time.Duration {
		d, err := time.ParseDuration(e.config.Data[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return d
	}
	const cancelled, spans = 2 * time.Second, 3 * time.Second
	delay := setting("SHOP_DRAIN_DELAY")
	pod := e.deployment.Spec.Template.Spec
	if grace, drain := time.Duration(*pod.TerminationGracePeriodSeconds)*time.Second, delay+setting("SHOP_DRAIN_TIMEOUT")+cancelled+spans; grace <= drain {
		t.Errorf("a shop is killed after %s, and may drain for %s", grace, drain)
	}
	ready := pod.Containers[0].ReadinessProbe
	if notice := time.Duration(ready.PeriodSeconds*ready.FailureThreshold) * time.Second; delay < 2*notice {
		t.Errorf("a shop serves for %s after its readiness went, which takes %s to notice", delay, notice)
	}
	if ready.HTTPGet.Path != "/readyz" || pod.Containers[0].LivenessProbe.HTTPGet.Path != "/livez" {
		t.Error("the probes ask for the wrong paths")
	}
}

func TestTheProcessesHaveTheLeastRights(t *testing.T) {
	e := read(t)
	for name, pod := range map[string]corev1.PodSpec{"shop": e.deployment.Spec.Template.Spec, "migrate": e.migrate.Spec.Template.Spec} {
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pod's security context is %+v", name, s)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s has a token of the cluster's API", name)
		}
		container := pod.Containers[0]
		s := container.SecurityContext
		if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: the security context is %+v", name, s)
		}
		if container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: the resources are %+v", name, container.Resources)
		}
		for _, env := range container.Env {
			if (env.Name == "SHOP_MYSQL" || env.Name == "SHOP_REDIS") && (env.ValueFrom == nil || env.ValueFrom.SecretKeyRef == nil) {
				t.Errorf("%s: %s comes from no secret", name, env.Name)
			}
		}
	}
	for name := range e.config.Data {
		if name == "SHOP_MYSQL" || name == "SHOP_REDIS" {
			t.Errorf("%s is in the ConfigMap", name)
		}
	}
}
