// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// serverLimit bounds the size of a server's /tmp.
const serverLimit = "2Gi"

// maxContainerName limits the name of a container.
const maxContainerName = 63

// serverStartSeconds is the time that a server has to answer before it is restarted.
const serverStartSeconds = 300

// orsOf returns a server with its address.
func orsOf(spec v1alpha1.ORSEnvironment) *contract.ORS {
	o := &contract.ORS{ORS: *spec.ORS.DeepCopy()}
	if spec.Name != "" {
		// Both are checked at admission; a server that cannot be reached shows in the probe.
		hosted, _ := contract.ParseHosted(spec.Name)
		hosts, _ := contract.HostsOf(cmp.Or(spec.BaseURL, contract.HostedURL))
		o.URL, o.Environment = hosts.Sessions, hosted.Variant
	}
	if server := spec.Server; server != nil {
		o.Server = &contract.Server{ServerImage: server.ServerImage, Container: containerOf(server.Container)}
		o.URL = "http://127.0.0.1:" + strconv.Itoa(int(server.Port))
	}
	return o
}

// containerOf returns the settings of a container as JSON.
func containerOf(spec v1alpha1.Container) contract.Container {
	var container contract.Container
	if len(spec.Env) > 0 {
		container.Env = encode(spec.Env)
	}
	if spec.Resources.Limits != nil || spec.Resources.Requests != nil {
		container.Resources = encode(spec.Resources)
	}
	return container
}

// orsMounts lists the Secrets that requests to a server need.
func orsMounts(o contract.ORS) []string {
	var mounts []string
	if o.APIKeySecretKeyRef != nil {
		mounts = append(mounts, contract.SecretMount(*o.APIKeySecretKeyRef))
	}
	for _, s := range o.Secrets {
		mounts = append(mounts, contract.SecretMount(s.SecretKeyRef))
	}
	return mounts
}

// encode writes plain API types, which were decoded from JSON, as JSON.
func encode(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic("desired: encoding an API type: " + err.Error())
	}
	return data
}

// CheckPorts checks that the servers of a run have ports of their own in its pods.
func (p Pins) CheckPorts() error {
	taken, servers := map[int32]string{}, p.servers()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		port := servers[name].Port
		if other, ok := taken[port]; ok {
			return fmt.Errorf("RewardEnvironments %q and %q both serve on port %d", other, name, port)
		}
		taken[port] = name
	}
	return nil
}

// servers returns the servers that environments run as containers, by the names of the environments.
func (p Pins) servers() map[string]*contract.Server {
	servers := map[string]*contract.Server{}
	for name, pin := range p {
		if ors := pin.Definition.ORS; ors != nil && ors.Server != nil {
			servers[name] = ors.Server
		}
	}
	return servers
}

// sidecar has what runs for an environment beside the workers of a run: a server or, if they are set, containers of
// functions (Program), of an agent (Agent) and of programs that a policy wrote (Sandbox).
type sidecar struct {
	contract.Server
	Program *program `json:"program,omitempty"`
	Agent   *program `json:"agent,omitempty"`
	Sandbox *program `json:"sandbox,omitempty"`
}

// Servers lists, as JSON, the sidecars of the workers, by the names of the environments. It is empty if no environment
// has a server or functions.
func (p Pins) Servers() string {
	sidecars := map[string]sidecar{}
	for name, server := range p.servers() {
		sidecars[name] = sidecar{Server: *server}
	}
	for name, program := range p.programs() {
		sidecars[name] = sidecar{Program: &program}
	}
	for name, agent := range p.agents() {
		sidecars[name] = sidecar{Program: sidecars[name].Program, Agent: &agent}
	}
	for name, sandbox := range p.sandboxes() {
		sidecars[name] = sidecar{Program: sidecars[name].Program, Agent: sidecars[name].Agent, Sandbox: &sandbox}
	}
	if len(sidecars) == 0 {
		return ""
	}
	return string(encode(sidecars))
}

// ServersOf returns the sidecars of a Job's workers, as in Pins.Servers. The Job of a learner has the list of its
// workers.
func ServersOf(job *batchv1.Job) string { return job.Annotations[v1alpha1.AnnotationServers] }

// AnnotateServers notes the sidecars of a run's workers in a Job.
func AnnotateServers(job *batchv1.Job, servers string) {
	if servers != "" {
		job.Annotations = merged(job.Annotations, map[string]string{v1alpha1.AnnotationServers: servers})
	}
}

// decodeServers decodes the output of Pins.Servers.
func decodeServers(list string) (map[string]sidecar, error) {
	if list == "" {
		return nil, nil
	}
	var servers map[string]sidecar
	if err := json.Unmarshal([]byte(list), &servers); err != nil {
		return nil, fmt.Errorf("decoding the servers of a Job: %w", err)
	}
	return servers, nil
}

// RunServers adds servers and functions to the pods of a Job. They are native sidecars, which restart independently.
// With a prefix, shared servers and programs in separate pods run elsewhere, under names that begin with the prefix. A
// probe starts once all servers answer. Workers do not wait for them, so that they can play other environments, and
// report a server that never answers.
func RunServers(job *batchv1.Job, list, prefix string, settings Settings) error {
	AnnotateServers(job, list)
	servers, err := decodeServers(list)
	if err != nil {
		return err
	}
	spec := &job.Spec.Template.Spec
	for i, name := range slices.Sorted(maps.Keys(servers)) {
		if of := servers[name]; len(of.all()) > 0 {
			if err := runPrograms(spec, i, name, prefix, of, settings); err != nil {
				return err
			}
			continue
		}
		if servers[name].Shared && prefix != "" {
			leadTo(spec, prefix)
			continue
		}
		volume := emptyVolume(serverVolume+"-"+strconv.Itoa(i), serverLimit)
		container, err := serverContainer(name, servers[name].Server, volume)
		if err != nil {
			return err
		}
		if prefix != "" {
			container.StartupProbe, container.LivenessProbe.InitialDelaySeconds = nil, serverStartSeconds
		}
		container.SecurityContext = spec.Containers[0].SecurityContext
		container.ImagePullPolicy = spec.Containers[0].ImagePullPolicy
		spec.Volumes = append(spec.Volumes, volume)
		spec.InitContainers = append(spec.InitContainers, container)
	}
	shareSockets(&job.Spec.Template)
	return nil
}

// leadTo tells the main container of a pod the prefix of the names of programs that run elsewhere.
func leadTo(spec *corev1.PodSpec, prefix string) {
	spec.Containers[0].Env = withEnv(spec.Containers[0].Env,
		[]corev1.EnvVar{{Name: contract.SharedServersVariable, Value: prefix}})
}

// serverContainerName returns the name of the container of an environment's server. If the name would be too long, it
// ends with a digest of the environment's name, so that no two names are equal and none ends with a hyphen.
func serverContainerName(environment string) string {
	name := v1alpha1.ServerContainerPrefix + environment
	if len(name) <= maxContainerName {
		return name
	}
	digest := templateDigest(environment)[:8]
	return name[:maxContainerName-len(digest)-1] + "-" + digest
}

// serverContainer returns the container of an environment's server. It has a writable /tmp.
func serverContainer(name string, server contract.Server, volume corev1.Volume) (corev1.Container, error) {
	health := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(server.Port)}}
	container := corev1.Container{
		Name: serverContainerName(name), Image: server.Image, Command: server.Command,
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env:           []corev1.EnvVar{{Name: "PORT", Value: strconv.Itoa(int(server.Port))}},
		Resources:     resources("50m"),
		VolumeMounts:  []corev1.VolumeMount{{Name: volume.Name, MountPath: "/tmp"}},
		StartupProbe: &corev1.Probe{ProbeHandler: health, PeriodSeconds: 2, TimeoutSeconds: 5,
			FailureThreshold: serverStartSeconds / 2},
		LivenessProbe: &corev1.Probe{ProbeHandler: health, PeriodSeconds: 20, TimeoutSeconds: 10, FailureThreshold: 6},
		// If the server crashes, the status has the end of its log.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	requestStorage(&container, volume)
	err := give(&container, name, server.Container)
	return container, err
}

// give applies a user's settings to a container.
func give(container *corev1.Container, name string, by contract.Container) error {
	var env []corev1.EnvVar
	var given corev1.ResourceRequirements
	for field, into := range map[*json.RawMessage]any{&by.Env: &env, &by.Resources: &given} {
		if len(*field) == 0 {
			continue
		}
		if err := json.Unmarshal(*field, into); err != nil {
			return fmt.Errorf("decoding the container of environment %q: %w", name, err)
		}
	}
	container.Env = withEnv(container.Env, env)
	container.Resources = withResources(container.Resources, given)
	return nil
}
