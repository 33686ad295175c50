// Package deploy holds what runs Tailwater elsewhere: the compose file's
// configuration and seed. The package has no code; its tests check these
// files, docker-compose.yml and the Dockerfile as far as a machine without a
// container engine can.
package deploy
